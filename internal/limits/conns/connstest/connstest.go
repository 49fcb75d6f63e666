// Package connstest has a listener in memory, whose clients have any address.
package connstest

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// Listener is a net.Listener.
type Listener struct {
	incoming chan any // a net.Conn, or an error for Accept to return
	closed   chan struct{}
	once     sync.Once
}

// Listen returns a listener.
func Listen() *Listener { return &Listener{incoming: make(chan any), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case x := <-l.incoming:
		if err, ok := x.(error); ok {
			return nil, err
		}
		return x.(net.Conn), nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return address("127.0.0.1") }

// Fail lets one call of Accept return an error.
func (l *Listener) Fail(err error) { l.incoming <- err }

// Errors is the channel that Fail sends to.
func (l *Listener) Errors() chan<- any { return l.incoming }

// Dial connects from an address, and returns when the connection is accepted. The connection ends with the test.
func (l *Listener) Dial(t testing.TB, from string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	select {
	case l.incoming <- conn{far, address(from)}:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is not accepted")
	}
	t.Cleanup(func() { near.Close() })
	_ = near.SetDeadline(time.Now().Add(20 * time.Second))
	return near
}

func address(ip string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 4711))
}

type conn struct {
	net.Conn
	from net.Addr
}

// RemoteAddr implements net.Conn.
func (c conn) RemoteAddr() net.Addr { return c.from }
