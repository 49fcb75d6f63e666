package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, header ...string) (*http.Response, bool) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	found := Serve(w, r)
	return w.Result(), found
}

func TestWanted(t *testing.T) {
	for accept, want := range map[string]bool{
		"":    false,
		"*/*": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"TEXT/HTML":               true,
		"application/json":        false,
		"text/html;q=0, */*":      false,
		"text/*":                  false,
		"text/html; q=x":          true,
		"application/json,;;,, ,": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		if got := Wanted(r); got != want {
			t.Errorf("Accept: %s: %v, want %v", accept, got, want)
		}
	}
}

func TestServe(t *testing.T) {
	for target, kind := range map[string]string{
		"/":               "text/html; charset=utf-8",
		"/page/app.js":    "text/javascript; charset=utf-8",
		"/page/style.css": "text/css; charset=utf-8",
		"/page/icon.svg":  "image/svg+xml",
	} {
		response, found := get(t, "GET", target)
		if !found || response.StatusCode != 200 || response.Header.Get("Content-Type") != kind ||
			response.ContentLength <= 0 {
			t.Errorf("%s: %v, %d, %v", target, found, response.StatusCode, response.Header)
		}
		if h := response.Header; h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", target, h)
		}
		tag := response.Header.Get("ETag")
		if again, _ := get(t, "GET", target, "If-None-Match", tag); again.StatusCode != http.StatusNotModified ||
			again.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s with its tag %s: %d", target, tag, again.StatusCode)
		}
		if head, _ := get(t, "HEAD", target); head.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", target, head.StatusCode)
		}
	}
	if response, _ := get(t, "GET", "/"); response.Header.Get("Vary") != "Accept" {
		t.Errorf("/ has Vary: %q", response.Header.Get("Vary"))
	}
	for _, target := range []string{"/page/", "/page/none.js", "/page/index.html", "/page/../page.go",
		"/page/..%2fpage.go", "/page/files/app.js", "/page//app.js", "/page/app.js/", "/page/page.go"} {
		if response, found := get(t, "GET", target); found {
			t.Errorf("%s exists: %d", target, response.StatusCode)
		}
	}
}

func TestPolicy(t *testing.T) {
	response, _ := get(t, "GET", "/")
	policy := map[string]string{}
	for part := range strings.SplitSeq(response.Header.Get("Content-Security-Policy"), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		policy[name] = value
	}
	for name, want := range map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
		"img-src":  "'self' data: blob:",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'",
	} {
		if policy[name] != want {
			t.Errorf("%s is %q, want %q", name, policy[name], want)
		}
	}
}

// references match references to other files.
var references = map[string]*regexp.Regexp{
	".html": regexp.MustCompile(`(?:href|src)="([^"#][^"]*)"`),
	".js":   regexp.MustCompile(`(?:from|import)\s*\(?\s*'([^']+)'`),
	".css":  regexp.MustCompile(`(?:url\(|@import\s+)['"]?([^'")]+)`),
}

// Every file that is referenced exists, and every file is referenced.
func TestFilesNameEachOther(t *testing.T) {
	named := []string{index}
	list, err := fs.ReadDir(files, "files")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		pattern := references[path.Ext(e.Name())]
		if pattern == nil {
			continue
		}
		for _, m := range pattern.FindAllStringSubmatch(content(t, e.Name()), -1) {
			name, ok := strings.CutPrefix(m[1], Prefix)
			if path.Ext(e.Name()) == ".js" {
				name, ok = strings.CutPrefix(m[1], "./")
			}
			if _, err := fs.Stat(files, path.Join("files", name)); !ok || err != nil {
				t.Errorf("%s references %s, which does not exist", e.Name(), m[1])
			}
			named = append(named, name)
		}
	}
	for _, e := range list {
		if !slices.Contains(named, e.Name()) {
			t.Errorf("no file references %s", e.Name())
		}
		if types[path.Ext(e.Name())] == "" {
			t.Errorf("%s has no media type", e.Name())
		}
	}
}

// The files refer to no other origin and use nothing that the policy forbids.
func TestNoOtherOrigin(t *testing.T) {
	address := regexp.MustCompile(`https?://[\w.-]+`)
	forbidden := regexp.MustCompile(`<style|\sstyle=|\son\w+="|javascript:|innerHTML|outerHTML|insertAdjacentHTML|` +
		`document\.write|\beval\(|new Function|<script>`)
	list, err := fs.ReadDir(files, "files")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		text := content(t, e.Name())
		for _, a := range address.FindAllString(text, -1) {
			if a != "http://www.w3.org" { // an XML namespace, which is never fetched
				t.Errorf("%s names %s", e.Name(), a)
			}
		}
		if bad := forbidden.FindString(text); bad != "" {
			t.Errorf("%s has %q", e.Name(), bad)
		}
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := files.ReadFile(path.Join("files", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
