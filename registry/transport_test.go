package registry

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
)

func okHandler(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// tlsServer is a registry with a certificate for example.com and 127.0.0.1 that no system trusts; caFile does.
func tlsServer(t *testing.T, h http.HandlerFunc) (s *httptest.Server, caFile string) {
	t.Helper()
	s = httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, caFile
}

// reach makes a client's connections to any host go to one address.
func dialTo(c *Client, addr string) {
	c.net.base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
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
		{"an authority of one's own", "example.com", Options{CAFile: caFile}, s, nil},
		{"another name", "example.org", Options{CAFile: caFile}, s, ErrCertificate},
		{"unknown authority", "example.com", Options{}, s, ErrCertificate},
		{"unchecked", "example.org", Options{Insecure: true}, s, nil},
		{"no TLS there", "example.com", Options{}, plain, ErrPlainHTTP},
		{"without TLS", "example.com", Options{PlainHTTP: true}, plain, nil},
		{"TLS there", "example.com", Options{PlainHTTP: true}, s, ErrTLS},
		{"TLS there, on this machine", "localhost", Options{}, s, ErrTLS},
		{"TLS on this machine", "localhost", Options{Insecure: true}, s, nil},
	} {
		c := authClient(t, test.opts)
		c.opts.Keychain = anonymousKeychain()
		slept := 0
		c.sleep = func(context.Context, time.Duration) error { slept++; return nil }
		dialTo(c, test.to.Listener.Addr().String())
		_, err := repositoryOf(t, c, test.host+"/a/model", pull).askFor("GET", "blobs/x")
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if slept > 0 {
			t.Errorf("%s: it waited for another certificate", test.name)
		}
		if test.want == nil && test.to == s && proto.Load() != "HTTP/2.0" {
			t.Errorf("%s: %s", test.name, proto.Load())
		}
	}
}

// What answers to plain HTTP in other words, or not at all, is told as TLS too.
func TestTLSRequired(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<h1>The plain HTTP request was sent to HTTPS port</h1>",
		"\x15\x03\x01\x00\x02\x02\x16",
	} {
		l := listen(t, func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, answer)
		})
		c := authClient(t, Options{Keychain: anonymousKeychain()})
		if _, err := repositoryOf(t, c, l+"/a/model", pull).askFor("GET", "blobs/x"); !errors.Is(err, ErrTLS) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// listen answers connections by f, which are then closed.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return l.Addr().String()
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

// Where nothing listens, people are told at once; while something is under way, it is worth waiting.
func TestConnectionRefused(t *testing.T) {
	p := newAuthPeer(t, &authPeer{})
	c := authClient(t, Options{Keychain: anonymousKeychain()})
	slept := 0
	c.sleep = func(context.Context, time.Duration) error { slept++; return nil }
	r := repositoryOf(t, c, p.host()+"/a/model", pull)
	wantSuccess(t, r, "GET", "blobs/x")
	p.Close()
	_, err := r.askFor("GET", "blobs/x")
	if !errors.Is(err, syscall.ECONNREFUSED) || !temporary(err) {
		t.Errorf("in the middle: %v", err)
	}
	c = authClient(t, Options{Keychain: anonymousKeychain()})
	c.sleep = func(context.Context, time.Duration) error { slept++; return nil }
	_, err = repositoryOf(t, c, p.host()+"/a/model", pull).askFor("GET", "blobs/x")
	if !errors.Is(err, syscall.ECONNREFUSED) || slept > 0 {
		t.Errorf("at the start: %v after %d pauses", err, slept)
	}
}

// A proxy sees a tunnel to the registry, and what goes through it is the registry's alone.
func TestProxy(t *testing.T) {
	s, caFile := tlsServer(t, okHandler)
	var mu sync.Mutex
	var asked []string
	proxy := listen(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		mu.Lock()
		asked = append(asked, req.Method+" "+req.Host+" "+req.Header.Get("Proxy-Authorization"))
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
	c := authClient(t, Options{Keychain: anonymousKeychain(), CAFile: caFile})
	c.net.base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy, User: url.UserPassword("ann", "secret")})
	wantSuccess(t, repositoryOf(t, c, "example.com/a/model", pull), "GET", "blobs/x")
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "CONNECT example.com:443 Basic YW5uOnNlY3JldA==" {
		t.Errorf("the proxy was asked %q", asked)
	}
}

// The environment's proxy is read once for each process, so this one is another.
func TestProxyOfEnvironment(t *testing.T) {
	if os.Getenv("REGISTRY_PROXY_TEST") != "" {
		c := authClient(t, Options{Keychain: anonymousKeychain()})
		for _, host := range []string{"registry.example.com", "direct.example.com"} {
			_, err := repositoryOf(t, c, host+"/a/model", pull).askFor("GET", "blobs/x")
			fmt.Printf("%s: %v\n", host, err)
		}
		return
	}
	proxy := listen(t, func(conn net.Conn) {
		http.ReadRequest(bufio.NewReader(conn))
		io.WriteString(conn, "HTTP/1.1 418 No\r\n\r\n")
	})
	out := runInChild(t, "TestProxyOfEnvironment", "REGISTRY_PROXY_TEST=1", "HTTPS_PROXY=http://ann:secret@"+proxy, "NO_PROXY=direct.example.com")
	if !strings.Contains(out, "registry.example.com: GET https://registry.example.com/v2/: No\n") || strings.Contains(out, "secret") {
		t.Errorf("through the proxy:\n%s", out)
	}
	if !strings.Contains(out, "direct.example.com: GET https://direct.example.com/v2/: dial tcp: lookup") {
		t.Errorf("without it:\n%s", out)
	}
}

// Answers are read to their end or closed: many requests of every kind use a few connections, and leave none open.
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
	c := authClient(t, Options{Keychain: passwordKeychain("secret", p.host()), Attempts: 2})
	r := repositoryOf(t, c, p.host()+"/a/model", push)
	for i := range 20 {
		for _, what := range []string{"blobs/ok", "blobs/moved", "blobs/missing", "blobs/busy"} {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				r.askFor(method, what)
			}
		}
		r.getManifest(context.Background(), "missing")
		r.headManifest(context.Background(), "busy")
		if i%5 == 0 {
			p.revoke()
		}
	}
	if n := opened.Load(); n > 2 {
		t.Errorf("%d connections for requests one after the other", n)
	}
	c.net.closeIdle()
	for deadline := time.Now().Add(5 * time.Second); open.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := open.Load(); n > 0 {
		t.Errorf("%d connections stay open", n)
	}
}

func TestRedirects(t *testing.T) {
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
			http.Error(w, "Request has expired", http.StatusForbidden)
		case strings.HasSuffix(req.URL.Path, "/old"):
			http.Redirect(w, req, "https://cdn.example.com/old?signature=s3cret", http.StatusFound)
		case strings.HasSuffix(req.URL.Path, "/again"):
			http.Redirect(w, req, "/v2/a/model/echo", http.StatusPermanentRedirect)
		default:
			io.Copy(w, req.Body)
		}
	})
	c := authClient(t, Options{Keychain: anonymousKeychain(), CAFile: caFile})
	dialTo(c, s.Listener.Addr().String())
	c.net.base.TLSClientConfig.InsecureSkipVerify = true // its certificate has one name only
	r := repositoryOf(t, c, "example.com/a/model", pull)
	for what, want := range map[string]string{
		"loop":    "too many of them",
		"plain":   "redirect from https://example.com/v2/a/model/plain to http://example.com/there: it leads away from TLS",
		"file":    "it is not for HTTP",
		"nowhere": "it has no usable Location",
	} {
		_, err := r.askFor("GET", what)
		if err == nil || !strings.Contains(err.Error(), want) || temporary(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := r.askFor("GET", "old")
	if !errors.Is(err, ErrInterrupted) || !temporary(err) {
		t.Errorf("a signed address that expired: %v", err)
	}
	checkNoSecrets(t, err, "s3cret")
	req, _ := r.request(context.Background(), "POST", r.url("again"), strings.NewReader("body"))
	if got, err := r.responseBody(req); got != "body" || err != nil {
		t.Errorf("a request with a body that is sent again: %q, %v", got, err)
	}
}

func TestLocation(t *testing.T) {
	from, _ := url.Parse("https://registry.example.com:5000/v2/a/blobs/uploads/")
	h, err := newClient(t).newHost("registry.example.com:5000")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ location, want string }{
		{"/v2/a/blobs/uploads/1?_state=x", "https://registry.example.com:5000/v2/a/blobs/uploads/1?_state=x"},
		{"1", "https://registry.example.com:5000/v2/a/blobs/uploads/1"},
		{"https://other.example.com/1", "https://other.example.com/1"},
		{"https://ann:secret@other.example.com/1", "https://other.example.com/1"},
		{"http://registry.example.com/v2/1?s=x", "https://registry.example.com:5000/v2/1?s=x"}, // behind a proxy that takes TLS off
		{"http://other.example.com/1", ""},
		{"ftp://registry.example.com/1", ""},
		{"https://%zz", ""},
		{"", ""},
	} {
		u, err := h.location(&http.Response{Request: &http.Request{Method: "POST", URL: from}, Header: http.Header{"Location": {test.location}}})
		switch {
		case err != nil && test.want != "":
			t.Errorf("%q: %v", test.location, err)
		case err == nil && u.String() != test.want:
			t.Errorf("%q is %s, want %q", test.location, u, test.want)
		}
	}
}

func TestTLSErrorsPermanent(t *testing.T) {
	for _, err := range []error{
		&sendError{err: fmt.Errorf("%w: x", ErrCertificate)}, &sendError{err: tls.AlertError(40)}, &sendError{err: ErrTLS},
		&sendError{err: &net.DNSError{IsNotFound: true}},
	} {
		if temporary(err) {
			t.Errorf("%v is temporary", err)
		}
	}
}
