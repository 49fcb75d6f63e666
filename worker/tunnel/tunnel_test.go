package tunnel

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var now = Versions{Program: "2.0 (commit b)", Engine: "0.32.4"}

func self(t *testing.T, token string, v Versions) Self {
	t.Helper()
	k, err := NewToken(strings.Repeat(token, MinToken))
	if err != nil {
		t.Fatal(err)
	}
	return Self{k, v}
}

// echo is a server whose connections return what they get. It keeps its log.
type echo struct {
	address string
	mu      sync.Mutex
	lines   []string
	handled []Request
}

func (e *echo) log(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// logged waits until a line of the log has all words.
func (e *echo) logged(t *testing.T, words ...string) {
	t.Helper()
	var all string
	for range 200 {
		e.mu.Lock()
		found := slices.ContainsFunc(e.lines, func(line string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
		})
		all = strings.Join(e.lines, "\n")
		e.mu.Unlock()
		if found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("no line of the log has %q:\n%s", words, all)
}

// logs reports whether a line of the log has some words.
func (e *echo) logs(words string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.lines, func(line string) bool { return strings.Contains(line, words) })
}

func (e *echo) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.handled)
}

func serve(t *testing.T, s Self) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, s)
}

func serveOn(t *testing.T, l net.Listener, s Self) *echo {
	t.Helper()
	e := &echo{address: l.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, s, e.log, func(ctx context.Context, r Request, accept func() (*Conn, error)) error {
			e.mu.Lock()
			e.handled = append(e.handled, r)
			e.mu.Unlock()
			if r.Purpose == "busy" {
				return errors.New("the worker is busy")
			}
			c, err := accept()
			if err != nil {
				return err
			}
			for {
				b, err := c.ReadFrame()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err == nil {
					err = c.WriteFrame(b)
				}
				if err != nil {
					return err
				}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestFrames(t *testing.T) {
	e := serve(t, self(t, "a", now))
	c, err := Dial(t.Context(), e.address, self(t, "a", now), Request{Purpose: "echo", Detail: json.RawMessage(`{"n":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Peer != now {
		t.Errorf("the worker has %v", c.Peer)
	}
	for _, want := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("long"), 100_000)} {
		if err := c.WriteFrame(want); err != nil {
			t.Fatal(err)
		}
		if got, err := c.ReadFrame(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes became %d, %v", len(want), len(got), err)
		}
	}
	if r := e.handled[0]; r.Purpose != "echo" || string(r.Detail) != `{"n":1}` {
		t.Errorf("asked for %s %s", r.Purpose, r.Detail)
	}
}

// Who has another token, another version, or a purpose that the worker refuses, learns why, and so does the log.
func TestRefused(t *testing.T) {
	e := serve(t, self(t, "a", now))
	for _, c := range []struct {
		name  string
		as    Self
		r     Request
		is    error
		words []string
	}{
		{"wrong token", self(t, "b", now), Request{Purpose: "echo"}, ErrToken, []string{"the tokens differ"}},
		{"no token", Self{Versions: now}, Request{Purpose: "echo"}, ErrToken, []string{"the tokens differ"}},
		{"old program", self(t, "a", Versions{"1.9", "0.32.4"}), Request{Purpose: "echo"}, ErrVersions,
			[]string{"ingot 2.0 (commit b)", "ingot 1.9"}},
		{"other engine", self(t, "a", Versions{"2.0 (commit b)", "0.31.0"}), Request{Purpose: "echo"}, ErrVersions,
			[]string{"engine 0.32.4", "0.31.0"}},
		{"busy", self(t, "a", now), Request{Purpose: "busy"}, ErrRefused, []string{"the worker is busy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := e.requests()
			conn, err := Dial(t.Context(), e.address, c.as, c.r)
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, c.is) {
				t.Fatalf("error %v, want %v", err, c.is)
			}
			for _, w := range c.words {
				if word := strings.TrimPrefix(w, "engine "); !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not have %q: %v", word, err)
				}
			}
			e.logged(t, append([]string{"refused"}, c.words...)...)
			if c.is != ErrRefused && e.requests() != before {
				t.Error("the request reached the handler")
			}
		})
	}
}

// Whoever speaks no TLS, or TLS and something else, is refused and logged.
func TestStrangers(t *testing.T) {
	e := serve(t, self(t, "a", now))
	raw, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	io.WriteString(raw, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	e.logged(t, "refused", raw.LocalAddr().String(), ErrPeer.Error())

	secure, err := tls.Dial("tcp", e.address, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		defer secure.Close()
		_, err = secure.Read(make([]byte, 1))
		e.logged(t, "refused", secure.LocalAddr().String())
	}
	if err == nil {
		t.Error("a client without the protocol was answered")
	}

	secure, err = tls.Dial("tcp", e.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	writeFrame(secure, []byte(`{"protocol":1,"proof":"AAAA"}`))
	b, _ := io.ReadAll(secure)
	if !strings.Contains(string(b), `"refused":"token"`) || strings.Contains(string(b), `"proof"`) {
		t.Errorf("a client without the token got %q", b)
	}

	// A listener that is no worker is refused by the dialer.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n")
			c.Close()
		}
	}()
	if _, err := Dial(t.Context(), l.Addr().String(), self(t, "a", now), Request{}); !errors.Is(err, ErrPeer) {
		t.Errorf("a listener that is no worker: %v", err)
	}
}

// A relay that ends TLS on both sides and passes all messages on fails at the proofs, which are bound to a connection.
func TestRelay(t *testing.T) {
	e := serve(t, self(t, "a", now))
	certificate, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	go func() {
		in, err := relay.Accept()
		if err != nil {
			return
		}
		out, err := tls.Dial("tcp", e.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
		if err != nil {
			in.Close()
			return
		}
		Pipe(in, out)
	}()
	if _, err := Dial(t.Context(), relay.Addr().String(), self(t, "a", now), Request{}); !errors.Is(err, ErrToken) {
		t.Errorf("through a relay: %v", err)
	}
	e.logged(t, "refused", ErrToken.Error())
	if e.requests() > 0 {
		t.Error("the relayed request reached the handler")
	}
}

// One changed bit in a record of a proven connection ends it.
func TestTampered(t *testing.T) {
	e := serve(t, self(t, "a", now))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	change := make(chan bool, 1)
	go func() {
		in, err := l.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := net.Dial("tcp", e.address)
		if err != nil {
			return
		}
		defer out.Close()
		go io.Copy(in, out)
		b := make([]byte, 1<<16)
		for {
			n, err := in.Read(b)
			if err != nil {
				return
			}
			select {
			case <-change:
				b[n-1] ^= 1
			default:
			}
			if _, err := out.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	c, err := Dial(t.Context(), l.Addr().String(), self(t, "a", now), Request{Purpose: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func() ([]byte, error) {
		if err := c.WriteFrame([]byte("command")); err != nil {
			return nil, err
		}
		return c.ReadFrame()
	}
	if b, err := say(); err != nil || string(b) != "command" {
		t.Fatalf("before: %q, %v", b, err)
	}
	change <- true
	if b, err := say(); err == nil {
		t.Errorf("a changed frame was answered: %q", b)
	}
	e.logged(t, "echo from", "bad record MAC")
}
