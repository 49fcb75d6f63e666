package hub

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// A public hub does not direct this machine to addresses of its own network, nor away from TLS.
func TestPrivateRedirect(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "secret")
	}))
	defer secret.Close()
	h := start(t)
	c := client(h, Options{})
	u := mustURL(t, secret.URL)
	q := call{what: "x", url: u, host: HuggingFace, named: c.named(call{url: mustURL(t, "https://huggingface.co/x")}, u)}
	if _, err := c.send(t.Context(), q); !errors.Is(err, errPrivate) || temporary(err) {
		t.Error(err)
	}
	resp := &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://huggingface.co/y"}}}
	if _, err := redirect(resp, call{what: "x", url: mustURL(t, "https://huggingface.co/x")}); err == nil {
		t.Error("followed a redirect away from TLS")
	}
}

// passing is a proxy that requires a password. It knows the fake's servers as hub.example and cdn.example.
type passing struct {
	*httptest.Server
	mu    sync.Mutex
	hosts map[string]int // requests
}

func newProxy(t *testing.T, h *hubtest.Hub, location func(string) string) *passing {
	p := &passing{hosts: map[string]int{}}
	servers := map[string]string{"hub.example": h.URL(), "cdn.example": h.CDN()}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := mustURL(t, servers[r.In.Host])
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if at := r.Header.Get("Location"); at != "" {
				r.Header.Set("Location", location(strings.Replace(at, h.CDN(), "http://cdn.example", 1)))
			}
			return nil
		},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.hosts[r.Host]++
		p.mu.Unlock()
		switch {
		case r.Header.Get("Proxy-Authorization") == "":
			w.WriteHeader(http.StatusProxyAuthRequired)
		case servers[r.Host] == "":
			w.WriteHeader(http.StatusBadGateway)
		default:
			r.Header.Del("Proxy-Authorization")
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// through returns a client that reaches the fake as hub.example through a proxy, whose address is private.
func through(t *testing.T, p *passing, token string) *Client {
	transport := newTransport()
	at := mustURL(t, strings.Replace(p.URL, "http://", "http://user:secret@", 1))
	transport.Proxy = http.ProxyURL(at)
	t.Cleanup(transport.CloseIdleConnections)
	return New(Options{
		Endpoint: "http://hub.example", Token: token, Transport: transport,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
}

// Everything goes through the proxy, whose address may be private although the hub's is public. The token does not go
// to the CDN.
func TestProxy(t *testing.T) {
	h := start(t)
	h.Token = "hf_secret"
	h.Add("tiny/gated", files()).Gate()
	p := newProxy(t, h, func(at string) string { return at })
	f := open(t, through(t, p, h.Token), "hf.co/tiny/gated")
	expectAll(f, files())
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if p.hosts["hub.example"] == 0 || p.hosts["cdn.example"] == 0 || len(p.hosts) != 2 {
		t.Error(p.hosts)
	}
	for _, r := range h.Requests() {
		if r.CDN != (r.Authorization == "") {
			t.Errorf("%+v", r)
		}
	}
}

// A proxy is not asked for private addresses that a public hub names, and its failures show no password.
func TestProxyRefuses(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files())
	for _, to := range []string{"http://10.0.0.1/x", "http://169.254.169.254/latest", "http://[::1]:80/x"} {
		p := newProxy(t, h, func(string) string { return to })
		file, err := open(t, through(t, p, ""), "hf.co/tiny/model").Open("model-1.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.(io.ReaderAt).ReadAt(make([]byte, 8), 0)
		if !errors.Is(err, errPrivate) || len(p.hosts) != 1 {
			t.Errorf("%s: %v, %v", to, err, p.hosts)
		}
	}
	p := newProxy(t, h, func(at string) string { return at })
	c := through(t, p, "")
	p.Close()
	_, err := c.Open(t.Context(), Name{Host: HuggingFace, Repository: "tiny/model"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A mirror with a name in a private network may direct to others of that network.
func TestPrivateMirror(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files())
	transport := newTransport()
	t.Cleanup(transport.CloseIdleConnections)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, at string) (net.Conn, error) {
		if at == "mirror.example:80" { // as a resolver of that network does
			at = strings.TrimPrefix(h.URL(), "http://")
		}
		return dial(ctx, network, at)
	}
	c := New(Options{Endpoint: "http://mirror.example", Transport: transport})
	f := open(t, c, "hf.co/tiny/model")
	expectAll(f, files())
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
