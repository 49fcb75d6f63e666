package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Browsers get the page. Other clients get the line by which they recognize a server.
func TestPage(t *testing.T) {
	f := serve(t, nil)
	for accept, want := range map[string]string{browser: "<!doctype html>", "*/*": "ingot is running",
		"": "ingot is running", "application/json": "ingot is running"} {
		if status, text := f.Ask(t, "GET", "/", "", "Accept", accept); status != 200 || !strings.HasPrefix(text, want) {
			t.Errorf("Accept: %s: %d: %.60s", accept, status, text)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "HEAD", f.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", browser)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if h := response.Header; !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
		h.Get("Vary") != "Accept" || h.Get("ETag") == "" {
		t.Errorf("headers of the page: %v", h)
	}
	f.Has(t, "GET", "/page/app.js", "", 200, "import ")
	f.Has(t, "GET", "/page/none.js", "", 404, `{"error":"/page/none.js not found"}`)
	f.Has(t, "GET", "/page/server.go", "", 404)
	f.Has(t, "GET", "/page/%2e%2e%2fpage.go", "", 404)
	f.Has(t, "POST", "/page/app.js", "", 405, "use GET, HEAD")
}

// The page needs no key, since it asks the user for it. Its requests to the API do. Requests with another Host header
// are rejected.
func TestPageWithKey(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.APIKey = "secret" })
	for _, c := range []struct {
		method, path, accept, host string
		status                     int
	}{
		{"GET", "/", browser, "", 200},
		{"GET", "/", "*/*", "", 401},
		{"POST", "/", browser, "", 401},
		{"GET", "/page/app.js", "*/*", "", 200},
		{"GET", "/page/none.js", "*/*", "", 404},
		{"GET", "/page/../api/tags", browser, "", 401},
		{"GET", "/api/tags", browser, "", 401},
		{"GET", "/api/layers?model=talk", browser, "", 401},
		{"GET", "/", browser, "evil.example", 403},
		{"GET", "/page/app.js", "*/*", "evil.example", 403},
	} {
		headers := []string{"Accept", c.accept}
		if c.host != "" {
			headers = append(headers, "Host", c.host)
		}
		if status, text := f.Ask(t, c.method, c.path, "", headers...); status != c.status {
			t.Errorf("%s %s for %s: status %d, want %d: %.80s", c.method, c.path, c.host, status, c.status, text)
		}
	}
}

func TestLayers(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "GET", "/api/layers?model=talk", "", 200, `"model":"talk:latest"`, `"digest":"sha256:`, `"kind":"tensor"`,
		`"name":"config.json"`, `"kind":"template"`, `"media_type":"application/`)
	f.Has(t, "GET", "/api/layers?model=none", "", 404, `{"error":"model 'none' not found"}`)
	f.Has(t, "GET", "/api/layers", "", 400, "the model parameter is missing")
	f.Has(t, "GET", "/api/layers?model=../x", "", 400, "model name")
}
