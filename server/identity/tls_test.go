package identity

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest/store"
)

// secureClient is client for servers with TLS that have one of the certificates.
func secureClient(st *store.Store, servers ...*httptest.Server) (*http.Client, *Dialer) {
	d := &Dialer{Store: func() (*store.Store, error) { return st, nil }, Always: true, roots: x509.NewCertPool()}
	for _, s := range servers {
		d.roots.AddCert(s.Certificate())
	}
	return &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DialTLSContext: d.DialTLSContext}}, d
}

// TestProvenWithTLS checks that a server with TLS proves itself within it, and that others do not.
func TestProvenWithTLS(t *testing.T) {
	mine, other := newStore(t), newStore(t)
	s := httptest.NewTLSServer(genuine(mine))
	defer s.Close()
	c, _ := secureClient(mine, s)
	for range 2 {
		response, err := c.Get(s.URL + "/prompt")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.TLS == nil {
			t.Error("the connection has no TLS")
		}
	}
	c, _ = secureClient(other, s)
	if _, err := c.Get(s.URL + "/prompt"); !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "wrong") {
		t.Errorf("another store: %v", err)
	}
	c, _ = secureClient(mine)
	var unknown x509.UnknownAuthorityError
	if _, err := c.Get(s.URL + "/prompt"); !errors.As(err, &unknown) || errors.Is(err, ErrUnproven) {
		t.Errorf("an unknown certificate: %v", err)
	}
	plain := httptest.NewServer(genuine(mine))
	defer plain.Close()
	c, _ = secureClient(mine)
	if _, err := c.Get("https" + strings.TrimPrefix(plain.URL, "http") + "/prompt"); err == nil {
		t.Error("a server without TLS is accepted")
	}
}

// TestProxyWithTLS checks that a proxy that ends TLS cannot pass the proof on.
func TestProxyWithTLS(t *testing.T) {
	mine := newStore(t)
	inner := serveAt(t, "127.0.0.1:0", genuine(mine))
	prompts := 0
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			prompts++
		}
		response, err := http.Get("http://" + inner.String() + r.URL.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		_, _ = io.Copy(w, response.Body)
	}))
	defer proxy.Close()
	c, _ := secureClient(mine, proxy)
	if _, err := c.Get(proxy.URL + "/prompt"); !errors.Is(err, ErrUnproven) || prompts > 0 {
		t.Errorf("%v; the proxy got %d prompts", err, prompts)
	}
}

// TestSilentTLS checks that a server that does not complete the handshake blocks a client for a limited time.
func TestSilentTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, d := secureClient(newStore(t))
	d.timeout = 20 * time.Millisecond
	if _, err := d.DialTLSContext(t.Context(), "tcp", l.Addr().String()); err == nil {
		t.Error("connected")
	}
}
