package tunnel

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/conns/connstest"
)

// TestManyHandshakes checks the numbers of connections that prove nothing: the next one ends another one.
func TestManyHandshakes(t *testing.T) {
	for name, c := range map[string]struct {
		most int
		from string
	}{
		"of all":         {limits.TunnelPending, "192.0.%d.%d"},
		"of one address": {limits.TunnelPendingPerAddress, "2001:db8::%d:%d"},
	} {
		t.Run(name, func(t *testing.T) {
			l := connstest.Listen()
			e := serveOn(t, l, self(t, "a", now))
			dial := func(i int) net.Conn { return l.Dial(t, fmt.Sprintf(c.from, i/250, i%250)) }
			for i := range c.most {
				dial(i)
			}
			if e.logs("too many others") {
				t.Error("a connection is refused too early")
			}
			dial(c.most)
			e.logged(t, "refused", "too many others")
		})
	}
}

// TestDialAgain checks that a dialer survives the end of its connection, but not of all.
func TestDialAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	busy := &busyListener{Listener: l}
	serveOn(t, busy, self(t, "a", now))
	for _, c := range []struct {
		ends, dials int
		fails       bool
	}{{0, 1, false}, {3, 4, false}, {100, tries, true}} {
		busy.set(c.ends)
		conn, err := Dial(t.Context(), l.Addr().String(), self(t, "a", now), Request{Purpose: "echo"})
		if err == nil {
			conn.Close()
		}
		if n := busy.set(0); (err != nil) != c.fails || n != c.dials {
			t.Errorf("%d ended: %d dials, %v", c.ends, n, err)
		}
	}
}

// busyListener ends the next connections.
type busyListener struct {
	net.Listener
	mu          sync.Mutex
	ends, dials int
}

// set sets how many connections end, and returns how many there were before.
func (l *busyListener) set(ends int) (dials int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dials = l.dials
	l.ends, l.dials = ends, 0
	return dials
}

// count counts a connection, and reports whether it ends.
func (l *busyListener) count() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	return l.dials <= l.ends
}

// Accept implements net.Listener.
func (l *busyListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.count() {
			return c, nil
		}
		c.Close()
	}
}

// TestAttackedWorker checks that nobody without the token keeps out who has it, not even from the same address, and
// that the log stays short.
func TestAttackedWorker(t *testing.T) {
	hello := clientHello(t)
	secure := func(c net.Conn) *tls.Conn {
		return tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
	}
	for name, attack := range map[string]func(c net.Conn){
		"says nothing":          func(net.Conn) {},
		"says no TLS":           func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\n\r\n") },
		"begins a hello":        func(c net.Conn) { c.Write(hello[:3]) },
		"half a hello":          func(c net.Conn) { c.Write(hello[:len(hello)-1]) },
		"a hello, then nothing": func(c net.Conn) { c.Write(hello) },
		"TLS, then nothing":     func(c net.Conn) { secure(c).Handshake() },
		"half a proof":          func(c net.Conn) { secure(c).Write([]byte{0, 0, 1, 0, '{'}) },
		"a wrong proof":         func(c net.Conn) { writeFrame(secure(c), []byte(`{"protocol":1,"proof":"AAAA"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, self(t, "a", now))
			running, err := Dial(t.Context(), e.address, self(t, "a", now), Request{Purpose: "echo"})
			if err != nil {
				t.Fatal(err)
			}
			defer running.Close()
			for range limits.TunnelPending + limits.TunnelPendingPerAddress {
				c, err := net.Dial("tcp", e.address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				attack(c)
			}
			c, err := Dial(t.Context(), e.address, self(t, "a", now), Request{Purpose: "echo"})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := running.WriteFrame([]byte("x")); err != nil {
				t.Error(err)
			}
			if b, err := running.ReadFrame(); err != nil || string(b) != "x" {
				t.Errorf("a connection with the token got %q, %v", b, err)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if n := len(e.lines); n > 4*limits.LogLines {
				t.Errorf("%d lines: %s", n, strings.Join(e.lines, "\n"))
			}
		})
	}
}

// clientHello returns the first bytes of a client.
func clientHello(t *testing.T) []byte {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(far, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}).Handshake()
	}()
	b := make([]byte, 16<<10)
	n, err := near.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	near.Close()
	return slices.Clip(b[:n])
}
