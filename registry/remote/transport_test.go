package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
)

func okHandler(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// tlsServer starts a TLS server with a certificate for example.com and 127.0.0.1. The system does not trust it; caFile
// holds its certificate.
func tlsServer(t *testing.T, h http.HandlerFunc) (s *httptest.Server, caFile string) {
	t.Helper()
	s = httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = rt.Quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, caFile
}

// dialTo makes a client connect to one address, whatever the host.
func dialTo(c *Client, addr string) {
	c.Net.Base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
}

func TestTLS(t *testing.T) {
	var proto atomic.Value
	s, caFile := tlsServer(t, func(w http.ResponseWriter, req *http.Request) {
		proto.Store(req.Proto)
		okHandler(w, req)
	})
	plain := httptest.NewServer(http.HandlerFunc(okHandler))
	defer plain.Close()
	for _, test := range []struct {
		name, host string
		opts       Options
		to         *httptest.Server
		want       error
	}{
		{"own certificate authority", "example.com", Options{CAFile: caFile}, s, nil},
		{"another name", "example.org", Options{CAFile: caFile}, s, ErrCertificate},
		{"unknown authority", "example.com", Options{}, s, ErrCertificate},
		{"no verification", "example.org", Options{Insecure: true}, s, nil},
		{"server without TLS", "example.com", Options{}, plain, ErrPlainHTTP},
		{"plain HTTP", "example.com", Options{PlainHTTP: true}, plain, nil},
		{"server with TLS", "example.com", Options{PlainHTTP: true}, s, ErrTLS},
		{"server with TLS on loopback", "localhost", Options{}, s, ErrTLS},
		{"TLS on loopback", "localhost", Options{Insecure: true}, s, nil},
	} {
		c := authClient(t, test.opts)
		c.opts.Keychain = rt.AnonymousKeychain()
		slept := 0
		c.Sleep = func(context.Context, time.Duration) error { slept++; return nil }
		dialTo(c, test.to.Listener.Addr().String())
		_, err := repositoryOf(t, c, test.host+"/a/model", Pull).askFor("GET", "blobs/x")
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if slept > 0 {
			t.Errorf("%s: retried a TLS error", test.name)
		}
		if test.want == nil && test.to == s && proto.Load() != "HTTP/2.0" {
			t.Errorf("%s: %s", test.name, proto.Load())
		}
	}
}

// TestTLSRequired: a TLS server's response to plain HTTP is recognized in other wording, and as a TLS alert.
func TestTLSRequired(t *testing.T) {
	for _, response := range []string{
		"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" +
			"<h1>The plain HTTP request was sent to HTTPS port</h1>",
		"\x15\x03\x01\x00\x02\x02\x16",
	} {
		l := rt.Listen(t, func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, response)
		})
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
		if _, err := repositoryOf(t, c, l+"/a/model", Pull).askFor("GET", "blobs/x"); !errors.Is(err, ErrTLS) {
			t.Errorf("%q: %v", response, err)
		}
	}
}

func TestCAFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	os.WriteFile(empty, []byte("nothing"), 0o600)
	for _, file := range []string{empty, empty + ".not"} {
		if _, err := New(Options{CAFile: file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestConnectionRefused: a refused connection fails at once on the first request, and is temporary during an operation.
func TestConnectionRefused(t *testing.T) {
	p := newAuthPeer(t, &authPeer{})
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
	slept := 0
	c.Sleep = func(context.Context, time.Duration) error { slept++; return nil }
	r := repositoryOf(t, c, p.host()+"/a/model", Pull)
	wantSuccess(t, r, "GET", "blobs/x")
	p.Close()
	_, err := r.askFor("GET", "blobs/x")
	if !errors.Is(err, syscall.ECONNREFUSED) || !Temporary(err) {
		t.Errorf("during an operation: %v", err)
	}
	c = authClient(t, Options{Keychain: rt.AnonymousKeychain()})
	c.Sleep = func(context.Context, time.Duration) error { slept++; return nil }
	_, err = repositoryOf(t, c, p.host()+"/a/model", Pull).askFor("GET", "blobs/x")
	if !errors.Is(err, syscall.ECONNREFUSED) || slept > 0 {
		t.Errorf("on the first request: %v after %d delays", err, slept)
	}
}

// TestProxy: a proxy gets a CONNECT request, and its credentials. The traffic in the tunnel is encrypted for the
// registry.
func TestProxy(t *testing.T) {
	s, caFile := tlsServer(t, okHandler)
	var mu sync.Mutex
	var requests []string
	proxy := rt.Listen(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		mu.Lock()
		requests = append(requests, req.Method+" "+req.Host+" "+req.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		defer to.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(to, r)
		io.Copy(conn, to)
	})
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CAFile: caFile})
	c.Net.Base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy, User: url.UserPassword("ann", "secret")})
	wantSuccess(t, repositoryOf(t, c, "example.com/a/model", Pull), "GET", "blobs/x")
	mu.Lock()
	defer mu.Unlock()
	if len(requests) != 1 || requests[0] != "CONNECT example.com:443 Basic YW5uOnNlY3JldA==" {
		t.Errorf("requests to the proxy: %q", requests)
	}
}

// TestProxyOfEnvironment runs in a child process, because a process reads the proxy variables only once.
func TestProxyOfEnvironment(t *testing.T) {
	if os.Getenv("REGISTRY_PROXY_TEST") != "" {
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
		for _, host := range []string{"registry.example.com", "direct.example.com"} {
			_, err := repositoryOf(t, c, host+"/a/model", Pull).askFor("GET", "blobs/x")
			fmt.Printf("%s: %v\n", host, err)
		}
		return
	}
	proxy := rt.Listen(t, func(conn net.Conn) {
		http.ReadRequest(bufio.NewReader(conn))
		io.WriteString(conn, "HTTP/1.1 418 No\r\n\r\n")
	})
	out := runInChild(t, "TestProxyOfEnvironment", "REGISTRY_PROXY_TEST=1", "HTTPS_PROXY=http://ann:secret@"+proxy,
		"NO_PROXY=direct.example.com")
	if !strings.Contains(out, "registry.example.com: GET https://registry.example.com/v2/: No\n") ||
		strings.Contains(out, "secret") {
		t.Errorf("through the proxy:\n%s", out)
	}
	if !strings.Contains(out, "direct.example.com: GET https://direct.example.com/v2/: dial tcp: lookup") {
		t.Errorf("without it:\n%s", out)
	}
}

// TestConnectionReuse: responses are drained or closed, so many requests of all kinds use few connections and leave
// none open.
func TestConnectionReuse(t *testing.T) {
	var open, opened atomic.Int32
	mux := http.NewServeMux()
	text := strings.Repeat("long ", 2000)
	p := &authPeer{scheme: "Bearer", user: "ann", handler: func(w http.ResponseWriter, req *http.Request) bool {
		if req.Header.Get("Authorization") == "" || req.URL.Path == "/token" {
			return false
		}
		switch {
		case strings.Contains(req.URL.Path, "missing"):
			http.Error(w, text, http.StatusNotFound)
		case strings.Contains(req.URL.Path, "busy"):
			http.Error(w, text, http.StatusServiceUnavailable)
		case strings.Contains(req.URL.Path, "moved"):
			w.Header().Set("Location", "/v2/a/model/blobs/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
			io.WriteString(w, text)
		default:
			return false
		}
		return true
	}}
	p.tokens = map[string][]string{}
	mux.Handle("/", p)
	p.Server = httptest.NewUnstartedServer(mux)
	p.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
			opened.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	p.Start()
	defer p.Close()
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host()), Attempts: 2})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	for i := range 20 {
		for _, what := range []string{"blobs/ok", "blobs/moved", "blobs/missing", "blobs/busy"} {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				r.askFor(method, what)
			}
		}
		r.GetManifest(context.Background(), "missing")
		r.HeadManifest(context.Background(), "busy")
		if i%5 == 0 {
			p.revoke()
		}
	}
	if n := opened.Load(); n > 2 {
		t.Errorf("%d connections for sequential requests", n)
	}
	c.Net.CloseIdle()
	for deadline := time.Now().Add(5 * time.Second); open.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := open.Load(); n > 0 {
		t.Errorf("%d connections stay open", n)
	}
}

func TestRedirects(t *testing.T) {
	storage := http.StatusForbidden
	s, caFile := tlsServer(t, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasSuffix(req.URL.Path, "/loop"):
			http.Redirect(w, req, "/v2/a/model/loop", http.StatusFound)
		case strings.HasSuffix(req.URL.Path, "/plain"):
			http.Redirect(w, req, "http://example.com/there?signature=s3cret", http.StatusFound)
		case strings.HasSuffix(req.URL.Path, "/file"):
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case strings.HasSuffix(req.URL.Path, "/nowhere"):
			w.WriteHeader(http.StatusFound)
		case req.Host == "cdn.example.com":
			http.Error(w, "Request has expired", storage)
		case strings.HasSuffix(req.URL.Path, "/old"):
			http.Redirect(w, req, "https://cdn.example.com/old?signature=s3cret", http.StatusFound)
		case strings.HasSuffix(req.URL.Path, "/again"):
			http.Redirect(w, req, "/v2/a/model/echo", http.StatusPermanentRedirect)
		default:
			io.Copy(w, req.Body)
		}
	})
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CAFile: caFile})
	dialTo(c, s.Listener.Addr().String())
	c.Net.Base.TLSClientConfig.InsecureSkipVerify = true // the certificate does not cover cdn.example.com
	r := repositoryOf(t, c, "example.com/a/model", Pull)
	for what, want := range map[string]string{
		"loop":    "too many of them",
		"plain":   "redirect from https://example.com/v2/a/model/plain to http://example.com/there: it leads away from TLS",
		"file":    "it is not for HTTP",
		"nowhere": "it has no usable Location",
	} {
		_, err := r.askFor("GET", what)
		if err == nil || !strings.Contains(err.Error(), want) || Temporary(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for status, expired := range map[int]bool{400: true, 401: true, 403: true, 410: true, 404: false, 416: false} {
		storage = status
		_, err := r.askFor("GET", "old")
		if err == nil || errors.Is(err, ErrInterrupted) != expired || Temporary(err) != expired {
			t.Errorf("a signed URL with %d: %v", status, err)
		}
		rt.CheckNoSecrets(t, err, "s3cret")
	}
	req, _ := r.Request(context.Background(), "POST", r.URL("again"), strings.NewReader("body"))
	if got, err := r.responseBody(req); got != "body" || err != nil {
		t.Errorf("a redirected request with a body: %q, %v", got, err)
	}
}

func TestTLSErrorsPermanent(t *testing.T) {
	for _, err := range []error{
		&sendError{err: fmt.Errorf("%w: x", ErrCertificate)}, &sendError{err: tls.AlertError(40)}, &sendError{err: ErrTLS},
		&sendError{err: &net.DNSError{IsNotFound: true}},
	} {
		if Temporary(err) {
			t.Errorf("%v is temporary", err)
		}
	}
}
