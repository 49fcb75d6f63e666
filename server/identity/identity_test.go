package identity

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest/store"
)

func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// genuine responds to challenges for a store, and to other requests with their path.
func genuine(store *store.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			fmt.Fprint(w, r.URL.Path)
			return
		}
		p, err := Prove(store, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(p)
	})
}

// serveAt starts a server on an address and returns the actual one.
func serveAt(t *testing.T, address string, h http.Handler) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", address, err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func client(st *store.Store, always bool) *http.Client {
	d := &Dialer{Store: func() (*store.Store, error) { return st, nil }, Always: always}
	return &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
}

func get(c *http.Client, at string) (string, error) {
	response, err := c.Get("http://" + at + "/prompt")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return string(b), err
}

// TestProven: the store's server is accepted under all of its addresses, and the verified connection serves the
// requests that follow.
func TestProven(t *testing.T) {
	store := newStore(t)
	for _, test := range []struct{ listen, dial string }{
		{"127.0.0.1:0", "127.0.0.1"},
		{"127.0.0.1:0", "localhost"},
		{"0.0.0.0:0", "127.0.0.1"},
		{"0.0.0.0:0", "127.0.0.3"},
		{"[::]:0", "127.0.0.1"}, // the server's socket has the IPv4 address mapped into IPv6
		{"[::]:0", "::1"},
		{"[::1]:0", "::1"},
	} {
		t.Run(test.listen+" "+test.dial, func(t *testing.T) {
			at := serveAt(t, test.listen, genuine(store))
			host := net.JoinHostPort(test.dial, fmt.Sprint(at.Port()))
			if probe, err := net.Dial("tcp", host); err != nil {
				t.Skipf("cannot connect to %s: %v", host, err)
			} else {
				probe.Close()
			}
			for _, always := range []bool{false, true} {
				c := client(store, always)
				for range 2 {
					if got, err := get(c, host); got != "/prompt" {
						t.Errorf("%s: %q, %v", host, got, err)
					}
				}
				c.CloseIdleConnections()
			}
		})
	}
}

// TestImpostors: another program on the port gets the challenge and nothing else.
func TestImpostors(t *testing.T) {
	store, other := newStore(t), newStore(t)
	copied := "{\"proof\":\"" + strings.Repeat("ab", 32) + "\"}"
	says := func(status int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		})
	}
	for name, test := range map[string]struct {
		h    http.Handler
		want string
	}{
		"another store":   {genuine(other), "the proof is wrong"},
		"made up":         {says(200, copied), "the proof is wrong"},
		"empty proof":     {says(200, `{"proof":""}`), "the proof is wrong"},
		"no proof":        {says(200, `{"version":"1"}`), "the proof is wrong"},
		"no JSON":         {says(200, "Ollama is running"), "the response to the challenge: invalid character"},
		"no digits":       {says(200, `{"proof":"zz"}`), "invalid byte"},
		"another program": {says(404, "404 page not found"), "the response to the challenge has status 404"},
		"wants a key":     {says(401, "{}"), "the response to the challenge has status 401"},
		"closes": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			genuine(store).ServeHTTP(w, r)
		}), "closes the connection"},
	} {
		var paths atomic.Value
		paths.Store("")
		at := serveAt(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			paths.Store(paths.Load().(string) + r.URL.Path + " ")
			test.h.ServeHTTP(w, r)
		}))
		got, err := get(client(store, false), at.String())
		if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, %v; want %s", name, got, err, test.want)
		}
		if requested := paths.Load(); requested != Path+" " {
			t.Errorf("%s: it got requests for %s", name, requested)
		}
	}
}

// relay copies bytes between clients and the real server, and counts the prompts that clients send.
func relay(t *testing.T, to string, dial func() (net.Conn, error)) (at string, seen *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	seen = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := dial()
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(c, s) }()
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					if strings.Contains(lines.Text(), "/prompt") {
						seen.Add(1)
					}
					fmt.Fprintf(s, "%s\r\n", lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String(), seen
}

// TestRelay: a program that relays the challenge to the real server gets a proof for another connection, whether it
// listens on another port or on the same port of another address.
func TestRelay(t *testing.T) {
	store := newStore(t)
	server := serveAt(t, "127.0.0.1:0", genuine(store)).String()
	_, port, _ := net.SplitHostPort(server)
	places := []string{"127.0.0.1:0"}
	if l, err := net.Listen("tcp", "127.0.0.2:"+port); err == nil { // on Linux, all of 127.0.0.0/8 is local
		l.Close()
		places = append(places, "127.0.0.2:"+port)
	}
	for _, place := range places {
		at, seen := relay(t, place, func() (net.Conn, error) { return net.Dial("tcp", server) })
		got, err := get(client(store, false), at)
		if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "the proof is wrong") || seen.Load() > 0 {
			t.Errorf("%s: %q, %v; the relay saw %d prompts", place, got, err, seen.Load())
		}
	}
}

// TestRelayOfTheSamePort: a program that accepted a client and then left the port to the real server has the server's
// address, and still no proof for its client's connection.
func TestRelayOfTheSamePort(t *testing.T) {
	store := newStore(t)
	impostor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := impostor.Addr().String()
	passed := make(chan error, 1)
	go func() {
		c, err := impostor.Accept()
		impostor.Close()
		if err != nil {
			passed <- err
			return
		}
		defer c.Close()
		l, err := net.Listen("tcp", at) // the real server starts now
		if err != nil {
			passed <- err
			return
		}
		s := &http.Server{Handler: genuine(store)}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		up, err := net.Dial("tcp", at)
		passed <- err
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, c) }()
		_, _ = io.Copy(c, up)
	}()
	got, err := get(client(store, false), at)
	if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "the proof is wrong") {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
}

// TestEachConnection: the proof for one connection does not hold for another one to the same address.
func TestEachConnection(t *testing.T) {
	store := newStore(t)
	s := httptest.NewServer(genuine(store))
	at := s.Listener.Addr().String()
	c := client(store, false)
	if got, err := get(c, at); got != "/prompt" {
		t.Fatalf("%q, %v", got, err)
	}
	s.Close()
	serveAt(t, at, genuine(newStore(t)))
	if got, err := get(c, at); !errors.Is(err, ErrUnproven) {
		t.Errorf("after another program took the port: %q, %v", got, err)
	}
}

// TestSilentServer: a server that does not respond blocks a client for a limited time.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if limits.ProofTime > 60 {
		t.Errorf("a client waits %d seconds", limits.ProofTime)
	}
	d := &Dialer{Store: func() (*store.Store, error) { return newStore(t), nil }, timeout: 20 * time.Millisecond}
	_, err = d.DialContext(t.Context(), "tcp", l.Addr().String())
	if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "no response to the challenge in time") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	d.timeout = 0
	if _, err := d.DialContext(ctx, "tcp", l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestLongResponse: an endless response is not read to its end.
func TestLongResponse(t *testing.T) {
	for _, endless := range []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<12)); err != nil {
					return
				}
			}
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", limits.ProofResponse))
		},
	} {
		at := serveAt(t, "127.0.0.1:0", endless)
		store := newStore(t)
		_, err := get(client(store, false), at.String())
		if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "exceeds 16384 bytes") {
			t.Errorf("error %v", err)
		}
	}
}

// TestNonce: a server accepts only nonces of the right form.
func TestNonce(t *testing.T) {
	store := newStore(t)
	at := serveAt(t, "127.0.0.1:0", genuine(store))
	for nonce, want := range map[string]int{
		strings.Repeat("0a", NonceSize):         200,
		strings.Repeat("0A", NonceSize):         400,
		strings.Repeat("0a", NonceSize-1):       400,
		strings.Repeat("0a", NonceSize+1):       400,
		strings.Repeat("0a", NonceSize) + "%0a": 400,
		"":                                      400,
	} {
		response, err := http.Get("http://" + at.String() + Path + "?" + NonceParameter + "=" + nonce)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("nonce %q: status %d, want %d", nonce, response.StatusCode, want)
		}
	}
}
