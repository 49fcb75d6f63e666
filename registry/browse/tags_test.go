package browse_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/ingotml/ingot/registry/remote"
)

// tagServer is a registry with one repository, m, of which handler answers requests for tags.
func tagServer(t *testing.T, handler http.HandlerFunc) (repo manifest.Name, queries *[]string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			requests = append(requests, r.URL.RawQuery)
			handler(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return name(t, strings.TrimPrefix(server.URL, "http://")+"/m"), &requests
}

// tagsAfter sends a page of the tags after the last one that the client has.
func tagsAfter(w http.ResponseWriter, r *http.Request, all []string, most int, link bool) {
	rest := all[slices.Index(all, r.URL.Query().Get("last"))+1:]
	page := rest[:min(most, len(rest))]
	if link && len(page) < len(rest) {
		w.Header().Set("Link", fmt.Sprintf(`</v2/m/tags/list?n=%d&last=%s>; rel="next"`, most, page[len(page)-1]))
	}
	fmt.Fprintf(w, `{"name":"m","tags":["%s"]}`, strings.Join(page, `","`))
}

func TestTags(t *testing.T) {
	all := []string{"v2", "v10", "latest", "a", "Z_1.x-y"}
	paged := func(most int, link bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if rest := all[slices.Index(all, r.URL.Query().Get("last"))+1:]; len(rest) == 0 {
				fmt.Fprint(w, `{"name":"m","tags":[]}`)
				return
			}
			tagsAfter(w, r, all, most, link)
		}
	}
	text := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	then := func(list ...http.HandlerFunc) http.HandlerFunc {
		n := 0
		return func(w http.ResponseWriter, r *http.Request) {
			n++
			list[min(n, len(list))-1](w, r)
		}
	}
	for _, c := range []struct {
		name     string
		handler  http.HandlerFunc
		want     []string
		wantErr  string
		requests int // requests; 0: not checked
	}{
		{"all at once", paged(100, true), all, "", 2},
		{"pages with links", paged(2, true), all, "", 3},
		{"pages of one", paged(1, true), all, "", 5},
		{"pages without links", paged(2, false), all, "", 4},
		{"last is ignored", text(200, `{"tags":["a","b"]}`), []string{"a", "b"}, "", 2},
		{"last is refused", then(text(200, `{"tags":["a","b"]}`), text(400, "")), []string{"a", "b"}, "", 2},
		{"last is unknown", then(text(200, `{"tags":["a"]}`), text(404, "")), []string{"a"}, "", 2},
		{"n is refused", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("n") {
				w.WriteHeader(400)
				return
			}
			fmt.Fprint(w, `{"tags":["a"]}`)
		}, []string{"a"}, "", 3},
		{"none", text(200, `{"name":"m","tags":[]}`), nil, "", 1},
		{"null", text(200, `{"name":"m","tags":null}`), nil, "", 1},
		{"no repository", text(404, `{"errors":[{"code":"NAME_UNKNOWN"}]}`), nil, "404 Not Found: NAME_UNKNOWN", 1},
		{"denied", text(403, ""), nil, "403 Forbidden", 1},
		{"not supported", text(405, ""), nil, "405 Method", 2},
		{"unavailable once", then(text(503, ""), paged(100, true)), all, "", 3},
		{"unavailable in the middle", then(paged(2, true), text(503, ""), paged(2, true)), all, "", 4},
		{"unavailable", text(503, ""), nil, "503", 2},
		{"a page is gone", then(paged(2, true), text(404, "")), nil, "404", 2},
		{"a page elsewhere", text(200, `{"tags":["a"]}`, "Link", `<https://r.example/v2/m/tags/list>; rel="next"`), nil,
			"the next page is on another host", 1},
		{"another port", text(200, `{"tags":["a"]}`, "Link", `<//127.0.0.1:1/v2/m/tags/list>; rel=next`), nil,
			"the next page is on another host", 1},
		{"the same page for ever", text(200, `{"tags":["a"]}`, "Link", `</v2/m/tags/list?n=1000>; rel="next"`), nil,
			"lead back to", 1},
		{"two pages for ever", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/m/tags/list?p=%d>; rel="next"`, (len(r.URL.Query().Get("p"))+1)%2))
			fmt.Fprint(w, `{"tags":["a"]}`)
		}, nil, "lead back to", 0},
		{"several links", then(text(200, `{"tags":["a"]}`, "Link",
			`</v2/m/tags/list?first=1,2>; rel="first", </v2/m/tags/list?page=2,3>; rel="next"`), text(200, `{"tags":["b"]}`)),
			[]string{"a", "b"}, "", 2},
		{"HTML", text(200, "<html>"), nil, "is no list of tags", 1},
		{"nothing", text(200, ""), nil, "is no list of tags", 1},
		{"not tags", text(200, `{"tags":["a","../b","c\nd","","e"]}`), []string{"a", "e"}, "", 0},
		{"twice", text(200, `{"tags":["a","a"]}`), []string{"a"}, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo, requests := tagServer(t, c.handler)
			cl, _ := client(t, false)
			got, err := browse.Tags(t.Context(), cl, repo)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, want an error with %q", err, c.wantErr)
				}
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			if c.requests != 0 && len(*requests) != c.requests {
				t.Errorf("asked %d times, want %d: %q", len(*requests), c.requests, *requests)
			}
		})
	}
}

// TestTagLimits: a registry that lists without end fails the listing.
func TestTagLimits(t *testing.T) {
	n := 0
	for name, page := range map[string]func() string{
		"too many tags": func() string {
			var tags []string
			for range 50_000 {
				n++
				tags = append(tags, strconv.Itoa(n))
			}
			return `{"tags":["` + strings.Join(tags, `","`) + `"]}`
		},
		"too much that is no tag": func() string {
			var tags []string
			for range 50_000 {
				n++
				tags = append(tags, "/"+strconv.Itoa(n))
			}
			return `{"tags":["` + strings.Join(tags, `","`) + `"]}`
		},
		"too many pages": func() string { n++; return fmt.Sprintf(`{"tags":["%d"]}`, n) },
		"nothing new":    func() string { return `{"tags":[]}` },
		"the same tag":   func() string { return `{"tags":["a"]}` },
		"a large page":   func() string { return strings.Repeat(" ", limits.TagPageSize+1) },
	} {
		pages := 0
		repo, _ := tagServer(t, func(w http.ResponseWriter, _ *http.Request) {
			pages++
			w.Header().Set("Link", fmt.Sprintf(`<?page=%d>; rel="next"`, pages))
			fmt.Fprint(w, page())
		})
		cl, _ := client(t, false)
		most := limits.ListPages
		switch {
		case strings.HasPrefix(name, "too much"):
			most = 50
		case name == "nothing new" || name == "the same tag":
			most = limits.IdlePages + 2
		}
		_, err := browse.Tags(t.Context(), cl, repo)
		if !errors.Is(err, manifest.ErrTooLarge) && !errors.Is(err, remote.ErrUnsupported) || pages > most {
			t.Errorf("%s: %v after %d pages", name, err, pages)
		}
	}
}

// What is no tag is one warning, and an error with Strict.
func TestTagsStrict(t *testing.T) {
	handler := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"tags":["a","../b",".c"]}`) }
	repo, _ := tagServer(t, handler)
	cl, warned := client(t, false)
	if got, err := browse.Tags(t.Context(), cl, repo); err != nil || len(got) != 1 || len(*warned) != 1 ||
		!strings.Contains((*warned)[0], "2 entries") {
		t.Errorf("%q, %v, warned %q", got, err, *warned)
	}
	cl, _ = client(t, true)
	if _, err := browse.Tags(t.Context(), cl, repo); !errors.Is(err, remote.ErrSkipped) {
		t.Errorf("strict: %v", err)
	}
}
