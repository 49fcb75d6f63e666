package hub

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// compressed answers with what the fake would, compressed.
func compressed(next http.Handler, coding string, w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Range")
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Encoding", coding)
	var z io.WriteCloser = nopCloser{w}
	switch coding {
	case "gzip":
		z = gzip.NewWriter(w)
	case "deflate":
		z = zlib.NewWriter(w)
	}
	w.WriteHeader(rec.Code)
	_, _ = z.Write(rec.Body.Bytes())
	_ = z.Close()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Responses that are compressed without a request for it are read, as far as possible.
func TestCompressed(t *testing.T) {
	for coding, want := range map[string]string{"gzip": "", "deflate": "", "br": `compressed as "br"`} {
		for _, what := range []func(*http.Request) bool{isTree, isInfo, isFile} {
			h := start(t)
			h.Add("tiny/model", few())
			respond(h, func(next http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
				if cdn || !what(r) || strings.HasSuffix(r.URL.Path, ".safetensors") {
					return false
				}
				compressed(next, coding, w, r)
				return true
			})
			expect(t, coding, readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), want)
		}
	}
	for name, body := range map[string]string{"not gzip": "plain text", "nothing": ""} {
		h := start(t)
		h.Add("tiny/model", few())
		respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
			if !isTree(r) {
				return false
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, body)
			return true
		})
		expect(t, name, readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), errBody.Error())
	}
}

// wrongResponses are bodies that come with status 200 in the place of a file or a document.
var wrongResponses = map[string]string{
	"empty":   "",
	"message": `{"Code": 500, "Success": false, "Message": "busy"}`,
	"page":    "<!DOCTYPE html><html><body>Please log in</body></html>",
	"cut":     `[{"type": "file", "pa`,
}

// Wrong answers are asked for again, some times, and are told in the end.
func TestWrongResponses(t *testing.T) {
	for what, body := range wrongResponses {
		for _, of := range []struct {
			name string
			is   func(r *http.Request, cdn bool) bool
		}{
			{"tree", func(r *http.Request, _ bool) bool { return isTree(r) }},
			{"info", func(r *http.Request, _ bool) bool { return isInfo(r) }},
			{"small file", func(r *http.Request, _ bool) bool { return strings.HasSuffix(r.URL.Path, "config.json") }},
			{"weights", func(_ *http.Request, cdn bool) bool { return cdn }},
		} {
			for _, times := range []int{1, 1000} {
				h := start(t)
				h.Add("tiny/model", few())
				var mu sync.Mutex
				left := times
				respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
					mu.Lock()
					defer mu.Unlock()
					if !of.is(r, cdn) || left == 0 {
						return false
					}
					left--
					_, _ = io.WriteString(w, body)
					return true
				})
				err := readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model")
				final := []string{"tree message", "tree page", "info page", "small file cut"} // nobody waits for them to pass
				if passes := !slices.Contains(final, of.name+" "+what); times == 1 && passes != (err == nil) ||
					times > 1 && err == nil {
					t.Errorf("%s instead of %s, %d times: %v", what, of.name, times, err)
				}
				if used := times - left; used > 60 {
					t.Errorf("%s instead of %s: asked %d times", what, of.name, used)
				}
				if err != nil && times > 1 && what == "message" && !strings.Contains(err.Error(), "busy") {
					t.Errorf("%s: the text is lost: %v", of.name, err)
				}
			}
		}
	}
}

// A file that does not end where it should is another one, also if nobody says how long it is.
func TestLongerFile(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", map[string]hubtest.Content{"LICENSE": hubtest.Bytes("MIT")})
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if !isFile(r) {
			return false
		}
		_, _ = io.WriteString(w, "MIT")
		w.(http.Flusher).Flush() // without a length
		_, _ = io.WriteString(w, " or not")
		return true
	})
	f := open(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model")
	file, err := f.Open("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if err := readError(file); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

// Statuses of the server that the hub directs to: the file is resolved again, and not without end.
func TestRefusedAddress(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 410} {
		for _, always := range []bool{false, true} {
			h := start(t)
			h.Add("tiny/model", few())
			var mu sync.Mutex
			refused := map[string]bool{}
			var first sync.Once
			respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
				mu.Lock()
				defer mu.Unlock()
				answered := false
				if isFile(r) && strings.HasSuffix(r.URL.Path, ".safetensors") { // at first, without its address
					first.Do(func() { answered = true })
				}
				if !cdn || !always && refused[r.URL.Path] {
					return answered
				}
				refused[r.URL.Path] = true
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>")
				return true
			})
			err := readAll(t, client(h, Options{Token: "hf_secret", Stall: time.Minute}), "hf.co/tiny/model")
			want := ""
			if always {
				want = "The token has expired. (after 5 attempts)"
			}
			expect(t, fmt.Sprint(status), err, want)
			if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
				t.Errorf("%d: the repository is blamed: %v", status, err)
			}
		}
	}
}

// Every status that may pass is waited out, and one that stays ends the run.
func TestStatuses(t *testing.T) {
	for _, status := range []int{408, 425, 429, 499, 500, 502, 503, 504, 507, 509, 520, 522, 524, 529, 530} {
		for _, of := range []func(r *http.Request, cdn bool) bool{
			func(r *http.Request, _ bool) bool { return isTree(r) }, func(r *http.Request, _ bool) bool { return isFile(r) },
			func(_ *http.Request, cdn bool) bool { return cdn },
		} {
			h := start(t)
			h.Add("tiny/model", few())
			var once sync.Once
			respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) (answered bool) {
				if of(r, cdn) {
					once.Do(func() {
						w.WriteHeader(status)
						answered = true
					})
				}
				return answered
			})
			expect(t, fmt.Sprint(status), readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), "")
		}
	}
}
