// Package sendfile sends parts of files over TCP connections with sendfile(2), and tells how much has arrived.
//
// Contract:
//
//   - A [Body] that is part of a file is not copied through this process. Every other body is sent as usual.
//   - On systems whose kernel does not say what the other side has, everything that was sent counts as arrived.
package sendfile

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"syscall"
)

// Body is a request body that may be part of a file. Its connection then sends it with sendfile(2).
type Body interface {
	// IsFile reports whether SendTo works: the body is part of a file.
	IsFile() bool
	// SendTo sends at most limit bytes to a connection.
	SendTo(c *net.TCPConn, limit int64) (sent int64, err error)
}

// conn is a TCP connection that sends a [Body] with sendfile(2). net/http calls the connection's
// ReadFrom with the request body if it can (since Go 1.8; golang.org/issue/30377).
type conn struct{ *net.TCPConn }

// ReadFrom implements [io.ReaderFrom].
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if b, ok := limited.R.(Body); ok && b.IsFile() {
			n, err := b.SendTo(c.TCPConn, limited.N)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// Dialer wraps a dial function so that its TCP connections are conns.
func Dialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context,
	string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// Unsent returns how many of the bytes that were written to a connection the other side does not have yet, as far as
// the kernel says. A slow connection may take no byte for a long time and yet move: its kernel's buffer is full.
func Unsent(c net.Conn) int {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok {
		return unsent(s)
	}
	return 0
}
