package hub

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// Each bound is an error that names it.
func TestLimits(t *testing.T) {
	commit := `{"sha": "` + strings.Repeat("a", 40) + `"}`
	serve := func(tree func(w http.ResponseWriter, r *http.Request)) error {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/revision/") {
				fmt.Fprint(w, commit)
				return
			}
			tree(w, r)
		}))
		defer s.Close()
		f, err := New(Options{Endpoint: s.URL}).Open(t.Context(), Name{Host: HuggingFace, Repository: "tiny/model"})
		if err == nil {
			f.Close()
		}
		return err
	}
	want := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	want(serve(func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range limits.HubDocument>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}), fmt.Sprintf("the hub's answer is larger than %d MiB", limits.HubDocument>>20))
	want(serve(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "[")
		for i := range limits.HubFiles {
			fmt.Fprintf(w, `{"type":"file","path":"%d"},`, i)
		}
		fmt.Fprint(w, `{"type":"file","path":"last"}]`)
	}), fmt.Sprintf("more than %d files", limits.HubFiles))
	for _, c := range []struct{ entry, want string }{
		{`{"type":"directory","path":"a"}`, "pages in a row without anything new"},
		{`{"type":"file","path":"a"}`, "pages in a row without anything new"},
		{`{"type":"directory","path":"%d"}`, fmt.Sprintf("more than %d pages", limits.ListPages)},
	} {
		pages := 0
		want(serve(func(w http.ResponseWriter, r *http.Request) {
			pages++
			w.Header().Set("Link", fmt.Sprintf(`<%s?cursor=%d>; rel="next"`, r.URL.Path, pages))
			fmt.Fprint(w, "["+strings.ReplaceAll(c.entry, "%d", strconv.Itoa(pages))+"]")
		}), c.want)
	}
	want(serve(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	}), fmt.Sprintf("more than %d redirects", limits.HubRedirects))
	_, err := ParseName("hf.co/a/b@" + strings.Repeat("r", limits.HubName))
	want(err, fmt.Sprintf("longer than %d bytes", limits.HubName))

	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), bytes.Repeat([]byte("x"), limits.HubToken+1), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := Environment(func(name string) string { return map[string]string{"HF_HOME": home}[name] })
	want(o.tokenProblem, "it is not a token")

	h := start(t)
	h.Add("tiny/model", map[string]hubtest.Content{"README.md": hubtest.Sparse{Total: limits.HubDocument + 1}})
	file, err := open(t, client(h, Options{}), "hf.co/tiny/model").Open("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want(readError(file), fmt.Sprintf("larger than %d MiB", limits.HubDocument>>20))
}

// Lists that would lead out of a folder, or contradict themselves, are refused.
func TestHostileLists(t *testing.T) {
	for _, tree := range []string{
		`[{"type":"file","path":"../x","size":1}]`, `[{"type":"file","path":"/x","size":1}]`,
		`[{"type":"file","path":"a\\b","size":1}]`, `[{"type":"file","path":"a\u0000b","size":1}]`,
		`[{"type":"file","path":"x","size":-1}]`, `[{"type":"file","path":"x","oid":"../x"}]`,
		`[{"type":"file","path":"x","lfs":{"oid":"abc","size":1}}]`,
		`[{"type":"file","path":"x"},{"type":"file","path":"x"}]`, `{}`, `<html>`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/revision/") {
				_, _ = io.WriteString(w, `{"sha": "`+strings.Repeat("a", 40)+`"}`)
				return
			}
			_, _ = io.WriteString(w, tree)
		}))
		_, err := New(Options{Endpoint: s.URL}).Open(t.Context(), Name{Host: HuggingFace, Repository: "tiny/model"})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tree, err)
		}
		s.Close()
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
