package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// few are the files of a repository that is quickly made.
var few = sync.OnceValue(func() map[string]hubtest.Content {
	list := files()
	list["model-1.safetensors"] = hubtest.Bytes(random(1, 400_000))
	return list
})

// respond lets a fake handle some requests in its own way, as look-alikes and broken servers do.
func respond(
	h *hubtest.Hub, before func(next http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) (answered bool),
) {
	front := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !before(next, w, r, strings.HasPrefix(r.URL.Path, "/repos/")) {
				next.ServeHTTP(w, r)
			}
		})
	}
	h.Set(func(h *hubtest.Hub) { h.Front = front })
}

// isTree, isInfo and isFile tell requests apart.
func isTree(r *http.Request) bool { return strings.Contains(r.URL.Path, "/tree/") }
func isInfo(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/models/") && !isTree(r)
}
func isFile(r *http.Request) bool { return strings.Contains(r.URL.Path, "/resolve/") }

// readAll opens a repository, announces and reads all files, and checks the bytes. Nothing may be different: an error
// is fine, other bytes are not.
func readAll(t *testing.T, c *Client, name string) error {
	t.Helper()
	return readFiles(t, c, name, few())
}

func readFiles(t *testing.T, c *Client, name string, list map[string]hubtest.Content) error {
	t.Helper()
	n, err := ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Open(t.Context(), n)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(f.names) != len(list) {
		t.Errorf("%d files are listed, want %d", len(f.names), len(list))
	}
	for _, name := range f.names { // the headers, as before any plan
		if strings.HasSuffix(name, ".safetensors") {
			file, err := f.Open(name)
			if err != nil {
				return err
			}
			defer file.Close()
			if _, err := file.(io.ReaderAt).ReadAt(make([]byte, 8), 0); err != nil {
				return err
			}
		}
	}
	expectAll(f, list)
	for _, name := range f.names {
		file, err := f.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		want := list[name].(hubtest.Bytes)
		var got []byte
		if strings.HasSuffix(name, ".safetensors") {
			got, err = io.ReadAll(io.NewSectionReader(file.(io.ReaderAt), 0, int64(len(want))))
		} else {
			got, err = io.ReadAll(file)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", name)
		}
	}
	return f.Verify(t.Context())
}

// expect compares an error with a text that it must contain; "" = there must be none.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %q", what, err, want)
	}
}

// A hub without /tree/ is read by the siblings of the revision, whose sizes it may not say. Both ways may fail.
func TestWithoutTree(t *testing.T) {
	type sibling map[string]any
	names := func(extra func(path string, s sibling)) func() any {
		return func() any {
			var list []any
			for path := range few() {
				s := sibling{"rfilename": path}
				if extra != nil {
					extra(path, s)
				}
				list = append(list, s)
			}
			return list
		}
	}
	sizes := names(func(path string, s sibling) { s["size"] = few()[path].Size() })
	for _, c := range []struct {
		what     string
		status   int // of /tree/
		siblings func() any
		head     int // status of HEAD; 0 = the fake's
		get      int
		want     string
	}{
		{"names", 404, names(nil), 0, 0, ""},
		{"sizes", 405, sizes, 500, 0, ""},
		{"no HEAD", 501, names(nil), 405, 0, ""},
		{"HEAD for another method", 410, names(nil), 403, 0, ""},
		{"HEAD without a length", 400, names(nil), 200, 0, ""},
		{"no sizes at all", 404, names(nil), 405, 404, "no such file"},
		{"no siblings", 404, func() any { return nil }, 0, 0, "lists no files"},
		{"negative", 404, names(func(_ string, s sibling) { s["size"] = -5 }), 0, 0, "invalid size"},
		{"names that leave", 404, func() any { return []any{sibling{"rfilename": "../x", "size": 1}} }, 0, 0, "invalid name"},
		{"no fallback", 403, names(nil), 0, 0, "no access"},
	} {
		h := start(t)
		repository := h.Add("tiny/model", few())
		respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
			switch {
			case isTree(r):
				w.WriteHeader(c.status)
			case isInfo(r):
				_ = json.NewEncoder(w).Encode(map[string]any{"sha": repository.Head(), "siblings": c.siblings()})
			case isFile(r) && r.Method == http.MethodHead && c.head != 0:
				w.WriteHeader(c.head)
			case isFile(r) && r.Method == http.MethodGet && c.get != 0:
				w.Header().Set("X-Error-Code", "EntryNotFound")
				w.WriteHeader(c.get)
			default:
				return false
			}
			return true
		})
		expect(t, c.what, readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), c.want)
	}
}

// A hub that knows no revisions has its default branch.
func TestWithoutRevision(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if strings.HasSuffix(r.URL.Path, "/revision/main") {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	})
	expect(t, "default", readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), "")
	expect(t, "main", readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model@main"), "not on the hub")
}

// A size of 0 beside the hash of other bytes, as some mirrors list all files, is none.
func TestSizeZero(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	respond(h, func(next http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if !isTree(r) {
			return false
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		var list []map[string]any
		_ = json.Unmarshal(rec.Body.Bytes(), &list)
		for _, e := range list {
			e["size"] = 0
			if l, ok := e["lfs"].(map[string]any); ok {
				delete(l, "size")
			}
		}
		_ = json.NewEncoder(w).Encode(list)
		return true
	})
	expect(t, "size 0", readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model"), "")
}

// A server that sends at most some bytes at a time is asked for the next ones at once.
func TestShortRanges(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	respond(h, func(_ http.Handler, _ http.ResponseWriter, r *http.Request, cdn bool) bool {
		var first, last int64
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); err == nil && cdn {
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, min(last, first+99_999)))
		}
		return false
	})
	c := client(h, Options{Stall: time.Minute, Sleep: func(context.Context, time.Duration) error {
		t.Error("it waits")
		return nil
	}})
	expect(t, "short ranges", readAll(t, c, "hf.co/tiny/model"), "")
}

// Without ranges, small files are read as a whole, and large ones with --keep-source: both ways of it, and a server
// that also cuts them.
func TestNoRanges(t *testing.T) {
	large := maps.Clone(few())
	large["model-1.safetensors"] = hubtest.Bytes(random(1, 9<<20))
	for _, c := range []struct {
		what string
		list map[string]hubtest.Content
		keep bool
		cut  int64 // bytes of each response; 0 = all
		want string
	}{
		{"small enough", few(), false, 0, ""},
		{"too large", large, false, 0, "use --keep-source"},
		{"kept", large, true, 0, ""},
		{"kept, cut", large, true, 200_000, "unexpected EOF (after 10 attempts)"},
	} {
		h := start(t)
		h.Add("tiny/model", c.list)
		respond(h, func(next http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if cdn {
				r.Header.Del("Range")
			}
			if !cdn || c.cut == 0 {
				return false
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			w.Header().Set("Content-Length", rec.Header().Get("Content-Length"))
			_, _ = w.Write(rec.Body.Bytes()[:min(int64(rec.Body.Len()), c.cut)])
			panic(http.ErrAbortHandler)
		})
		opts := Options{Keep: c.keep, Cache: t.TempDir(), Stall: time.Minute}
		expect(t, c.what, readFiles(t, client(h, opts), "hf.co/tiny/model", c.list), c.want)
	}
	for host, remedy := range map[string]string{HuggingFace: "--keep-source", ModelScope: "modelscope download"} {
		f := &file{name: Name{Host: host, Repository: "a/b"}}
		if err := f.noRanges("x"); !errors.Is(err, ErrNoRanges) || !strings.Contains(err.Error(), remedy) {
			t.Error(err)
		}
	}
}

// Entity tags are compared without their weakness. Another tag is another file, unless all bytes are compared with
// their hash.
func TestETags(t *testing.T) {
	for _, c := range []struct {
		what string
		tags []string
		keep bool
		want string
	}{
		{"weak and strong", []string{`"a"`, `W/"a"`, "a", `w/"a"`}, false, ""},
		{"other tags", []string{`"a"`, `"b"`}, false, "its etag is another"},
		{"other tags, kept", []string{`"a"`, `"b"`}, true, ""},
	} {
		h := start(t)
		h.Add("tiny/model", few())
		var mu sync.Mutex
		requests := map[string]int{}
		respond(h, func(next http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if !cdn {
				return false
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			mu.Lock()
			w.Header().Set("ETag", c.tags[requests[r.URL.Path]%len(c.tags)])
			requests[r.URL.Path]++
			mu.Unlock()
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
			return true
		})
		opts := Options{Keep: c.keep, Cache: t.TempDir(), Stall: time.Minute}
		expect(t, c.what, readAll(t, client(h, opts), "hf.co/tiny/model"), c.want)
	}
}
