package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/certs"
	"github.com/ingotml/ingot/server/certs/certstest"
)

// secure is a server with TLS.
type secure struct {
	*fixture
	certFile, keyFile string
	log               syncBuffer
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) printf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(&b.text, format+"\n", args...)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func serveTLS(t *testing.T, change func(*server.Options)) *secure {
	t.Helper()
	s := &secure{}
	s.certFile, s.keyFile = certstest.Files(t, t.TempDir())
	s.fixture = serve(t, func(o *server.Options) {
		pair, err := certs.Load(s.certFile, s.keyFile, s.log.printf)
		if err != nil {
			t.Fatal(err)
		}
		o.Certificate = pair.Certificate
		if change != nil {
			change(o)
		}
	})
	return s
}

// client trusts the certificate that the server has now.
func (s *secure) client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(s.certFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Requests and streams work over TLS, with HTTP/1.1 and HTTP/2, by all of the certificate's names.
func TestTLS(t *testing.T) {
	s := serveTLS(t, func(o *server.Options) { o.APIKey = "secret" })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "https://"))
	for _, http2 := range []bool{false, true} {
		client := s.client(t, http2)
		for _, host := range []string{"127.0.0.1", "localhost"} {
			for _, stream := range []string{"true", "false"} {
				r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+net.JoinHostPort(host, port)+"/v1/responses",
					strings.NewReader(`{"model":"talk","input":"Hi","stream":`+stream+`}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer secret")
				response, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != 200 || !strings.Contains(string(text), "Hello world") ||
					(response.ProtoMajor == 2) != http2 {
					t.Errorf("HTTP/2 %v, %s, stream %s: %s, %d: %s, %v", http2, host, stream, response.Proto, response.StatusCode,
						text, err)
				}
			}
		}
	}
	if _, err := http.Get(s.URL + "/healthz"); err == nil {
		t.Error("a client that does not know the certificate trusts it")
	}
}

// A request without TLS gets an answer that says so.
func TestPlainRequestToTLS(t *testing.T) {
	s := serveTLS(t, nil)
	response, err := http.Get("http://" + strings.TrimPrefix(s.URL, "https://") + "/api/version")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 400 || !strings.Contains(string(text), "HTTP request to an HTTPS server") {
		t.Errorf("%d: %s, %v", response.StatusCode, text, err)
	}
	conn := s.Dial(t)
	if _, err := io.WriteString(conn, "\x16\x03\x01garbage that is no handshake"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // the server closes the connection
	if response, err := s.client(t, true).Get(s.URL + "/healthz"); err != nil {
		t.Error(err)
	} else {
		response.Body.Close()
	}
}

// New connections get a new certificate; while only one of its files is there, they get the former one.
func TestNewCertificate(t *testing.T) {
	s := serveTLS(t, nil)
	name := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Fatalf("the certificate is %s", got)
	}
	certificate, key := certstest.Make(t, "second", time.Now().Add(time.Hour))
	certstest.Write(t, s.certFile, certificate)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.log.String(), "does not belong"); {
		if got := name(); got != "first" || time.Now().After(deadline) {
			t.Fatalf("with half a pair, the certificate is %s; log %s", got, s.log.String())
		}
	}
	if got := name(); got != "first" {
		t.Fatalf("with half a pair, the certificate is %s", got)
	}
	certstest.Write(t, s.keyFile, key)
	for deadline := time.Now().Add(20 * time.Second); name() != "second"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not used")
		}
	}
	response, err := s.client(t, true).Get(s.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

// A connection with HTTP/2 has a bounded number of requests; a client opens another one for more.
func TestStreams(t *testing.T) {
	wait := make(chan struct{})
	s := serveTLS(t, nil)
	s.Wait = wait
	client := s.client(t, true)
	var connections atomic.Int64
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		connections.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	first, err := client.Get(s.URL + "/healthz") // the others find its connection
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	var all sync.WaitGroup
	for range limits.Streams + 1 {
		all.Go(func() {
			response, err := client.Post(s.URL+"/api/generate", "application/json",
				strings.NewReader(`{"model":"plain","prompt":"x"}`))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode != 200 || response.ProtoMajor != 2 {
				t.Errorf("%s: %d", response.Proto, response.StatusCode)
			}
		})
	}
	for deadline := time.Now().Add(20 * time.Second); connections.Load() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("one connection has all requests")
			break
		}
	}
	close(wait)
	all.Wait()
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}
