package server

import (
	"net"
	"sync"
)

// counted is a listener that lets so many connections in at a time; others wait in the system's queue.
type counted struct {
	net.Listener
	free chan struct{}
	done chan struct{}
	once sync.Once
}

func newCounted(l net.Listener, most int) *counted {
	return &counted{Listener: l, free: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *counted) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &countedConn{Conn: c, free: l.free}, nil
}

// Close implements net.Listener.
func (l *counted) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type countedConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}
