package server

import (
	"net"
	"sync"
)

// limitedListener limits the number of open connections. Further ones wait in the operating system's queue.
type limitedListener struct {
	net.Listener
	free chan struct{}
	done chan struct{}
	once sync.Once
}

func limitConnections(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, free: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
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
	return &limitedConn{Conn: c, free: l.free}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}
