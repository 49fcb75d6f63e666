package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// The next page of a list is asked at the endpoint, wherever it is named. A list that does not lead to its end is an
// error, never a shorter list.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		what string
		link func(home, path, query string) string // of the Link header; "" = none
		want string
	}{
		{"the original hub", func(_, path, query string) string {
			return "<https://huggingface.example" + path + "?" + query + `>; rel="next"`
		}, ""},
		{"a path", func(_, path, query string) string {
			return "<" + path + "?" + query + `>; rel="next"`
		}, ""},
		{"a query", func(_, _, query string) string { return "<?" + query + ">;rel=next" }, ""},
		{"below a folder", func(_, path, query string) string {
			return "<https://hub.example/proxy" + path + "?" + query + `>; rel="next"`
		}, ""},
		{"several links", func(home, path, query string) string {
			return `<https://a.example/x,y?cursor=1>; rel="prev", <` + home + path + "?" + query +
				`>; title="a"; rel="last next"`
		}, ""},
		{"another list", func(string, string, string) string {
			return `<https://huggingface.example/api/models/other/model/tree/main?cursor=2>; rel="next"`
		}, "on another host"},
		{"no list", func(string, string, string) string {
			return `<https://evil.example/login>; rel="next"`
		}, "on another host, and not of this list: evil.example"},
		{"a circle", func(home, path, _ string) string {
			return "<" + home + path + `?recursive=true&expand=false>; rel="next"`
		}, "lead back"},
		{"a circle of cursors", func(home, path, query string) string {
			next := map[bool]string{true: "4", false: "2"}[strings.Contains(query, "cursor=4")]
			return "<" + home + path + "?cursor=" + next + `>; rel="next"`
		}, "lead back"},
		{"no address", func(string, string, string) string {
			return `<>; rel="next"`
		}, "invalid address"},
		{"no brackets", func(string, string, string) string {
			return `https://x.example; rel="next"`
		}, "invalid address"},
		{"no host", func(string, string, string) string {
			return `<http://[::1>; rel="next"`
		}, "invalid address"},
	} {
		h := start(t)
		h.Add("tiny/model", few())
		h.PageSize = 2
		respond(h, func(next http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
			if !isTree(r) {
				return false
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			if link := rec.Header().Get("Link"); link != "" {
				_, rest, _ := strings.Cut(link, "?")
				query, _, _ := strings.Cut(rest, ">")
				w.Header().Set("Link", c.link(h.URL(), r.URL.Path, query))
			}
			_, _ = w.Write(rec.Body.Bytes())
			return true
		})
		err := readAll(t, client(h, Options{Token: "hf_secret", Stall: time.Minute}), "hf.co/tiny/model")
		expect(t, c.what, err, c.want)
		if c.want != "" && !errors.Is(err, errPages) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A page in the middle that is empty or missing is an error.
func TestPageMissing(t *testing.T) {
	for what, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"empty":   {200, "[]", "a page in the middle is empty"},
		"missing": {404, "", "a page is missing"},
		"gone":    {410, "", "a page is missing"},
	} {
		h := start(t)
		h.Add("tiny/model", few())
		h.PageSize = 2
		respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
			if !isTree(r) || r.URL.Query().Get("cursor") != "2" {
				return false
			}
			w.Header().Set("Link", "<"+r.URL.Path+`?cursor=4>; rel="next"`)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
			return true
		})
		err := readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model")
		expect(t, what, err, c.want)
		if status := (*StatusError)(nil); errors.As(err, &status) != (c.status != 200) {
			t.Errorf("%s: the cause is lost: %v", what, err)
		}
	}
}

// A repository that a rename redirects is followed, and its pages are asked at the new name.
func TestRenamed(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	h.PageSize = 2
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if !strings.Contains(r.URL.Path, "/Old/Name") {
			return false
		}
		to := strings.Replace(r.URL.RequestURI(), "/Old/Name", "/tiny/model", 1)
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return true
	})
	expect(t, "renamed", readAll(t, client(h, Options{Stall: time.Minute}), "hf.co/Old/Name"), "")
}

// Of a list with more elements than a repository may have files, no more is decoded.
func TestBounded(t *testing.T) {
	text := "[" + strings.Repeat("{},", limits.HubFiles+1000) + "{}]"
	var list struct{ Siblings bounded[sibling] }
	err := json.Unmarshal([]byte(`{"siblings":`+text+`}`), &list)
	if err != nil || len(list.Siblings) != limits.HubFiles+1 {
		t.Errorf("%d elements, %v", len(list.Siblings), err)
	}
	for text, want := range map[string]int{
		"null": 0, "[]": 0, `[{"rfilename":"a"},{}]`: 2, "{}": -1, `["a"]`: -1, "[1": -1,
	} {
		var list bounded[sibling]
		if err := json.Unmarshal([]byte(text), &list); (err != nil) != (want < 0) || err == nil && len(list) != want {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
}

// A list that never ends is refused.
func TestEndlessList(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	n := 0
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if !isTree(r) {
			return false
		}
		n++
		w.Header().Set("Link", fmt.Sprintf(`<%s?cursor=%d>; rel="next"`, r.URL.Path, n))
		var list []map[string]any
		for i := range 2000 {
			list = append(list, map[string]any{"type": "directory", "path": fmt.Sprint(n, i)})
		}
		_ = json.NewEncoder(w).Encode(list)
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name, _ := ParseName("hf.co/tiny/model")
	_, err := client(h, Options{Stall: time.Minute}).Open(ctx, name)
	expect(t, "endless", err, "more than 100000 files")
}
