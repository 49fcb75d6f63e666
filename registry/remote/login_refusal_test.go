package remote

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestLoginRefused: what a host answers that is no registry, or no acceptance, is an error, and nothing is stored.
func TestLoginRefused(t *testing.T) {
	basic := func(next int) http.HandlerFunc { // a registry with passwords that answers them so
		return func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(401)
				return
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(next)
		}
	}
	for _, c := range []struct {
		what   string
		handle http.HandlerFunc
		want   error
		says   string
	}{
		{"404", http.NotFound, ErrNoRegistry, "Not Found (404)"},
		{"403", status(403), ErrNoRegistry, "Forbidden (403)"},
		{"501", status(501), ErrNoRegistry, "(501)"},
		{"418", status(418), ErrNoRegistry, "(418)"},
		{"204", status(204), ErrNoRegistry, "(204)"},
		{"a redirect", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "https://u:s3cret@portal.example/login?x=s3cret", http.StatusFound)
		}, ErrNoRegistry, "a redirect to https://portal.example/login (302)"},
		{"a redirect to nowhere", status(307), ErrNoRegistry, "a redirect"},
		{"a web page", page("text/html; charset=utf-8"), ErrNoRegistry, "a web page"},
		{"a web page without a type", page(""), ErrNoRegistry, "a web page"},
		{"401 without a challenge", status(401), ErrNoRegistry, "no Basic or Bearer challenge"},
		{"401 with an unknown challenge", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Negotiate")
			w.WriteHeader(401)
		}, ErrNoRegistry, "no Basic or Bearer challenge"},
		{"a busy host", status(503), nil, "503"},
		{"a refused password", basic(401), ErrUnauthorized, "rejected the credentials"},
		{"a forbidden password", basic(403), ErrUnauthorized, "rejected the credentials"},
		{"404 for a password", basic(404), ErrNoRegistry, "(404)"},
		{"a redirect for a password", basic(302), ErrNoRegistry, "/elsewhere (302)"},
		{"a token server that is none", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="/token"`)
			w.WriteHeader(map[string]int{"/v2/": 401, "/token": 404}[req.URL.Path])
		}, nil, "request a token"},
		{"a token that is refused", func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/token" {
				w.Write([]byte(`{"token":"t","refresh_token":"r"}`))
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="/token"`)
			w.WriteHeader(401)
		}, ErrUnauthorized, "rejected the credentials"},
		{"a token server without TLS", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="ftp://x/token"`)
			w.WriteHeader(401)
		}, nil, "token server"},
		{"an open registry that checks passwords", func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") != "" {
				w.WriteHeader(401)
			}
		}, ErrUnauthorized, "rejected the credentials"},
	} {
		t.Run(c.what, func(t *testing.T) {
			file := rt.DockerHome(t, "")
			s, caFile := tlsServer(t, c.handle)
			client := authClient(t, Options{CAFile: caFile})
			_, err := client.Login(t.Context(), strings.TrimPrefix(s.URL, "https://"), "ann", "s3cret")
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v, %q", err, c.want, c.says)
			}
			rt.CheckNoSecrets(t, err, "s3cret", "YW5uOn")
			if _, err := os.Stat(file); err == nil {
				t.Error("something is stored")
			}
		})
	}
}

// TestLoginWithoutNeed: the password is not sent to a registry that needs none. One that checks passwords nevertheless
// accepts a login.
func TestLoginWithoutNeed(t *testing.T) {
	for _, checks := range []bool{false, true} {
		rt.DockerHome(t, "")
		p := newAuthPeer(t, &authPeer{user: "ann"})
		p.handler = func(w http.ResponseWriter, req *http.Request) bool {
			header := req.Header.Get("Authorization")
			if !checks && header == p.basic() {
				t.Error("the password was sent")
			}
			if checks && header != "" && header != p.basic() {
				w.WriteHeader(401)
				return true
			}
			return false
		}
		got, err := authClient(t, Options{}).Login(t.Context(), p.host(), "ann", "secret")
		if err != nil || (got.Stored != "") != checks {
			t.Errorf("checks %v: %+v, %v", checks, got, err)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func page(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		w.Write([]byte("\n <!DOCTYPE html><html>welcome</html>"))
	}
}
