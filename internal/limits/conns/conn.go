package conns

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	of     *Listener
	unread atomic.Bool

	// The listener's lock guards all below.
	peer  *peer
	uses  [unread + 1]int // of each level; the highest one counts
	known bool
	gone  bool          // it is not in the table
	at    *list.Element // among the peer's connections of its level; nil: it is held
}

// Of returns the Conn that a connection is, or is over, such as one with TLS; nil: it is none.
func Of(c net.Conn) *Conn {
	for {
		switch over := c.(type) {
		case *Conn:
			return over
		case interface{ NetConn() net.Conn }:
			c = over.NetConn()
		default:
			return nil
		}
	}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if c.unread.Load() {
		c.of.mu.Lock()
		c.change(c.looked)
		c.of.mu.Unlock()
	}
	return c.Conn.Read(b)
}

// looked says that the owner reads from the connection. The caller has the lock, and moves the connection.
func (c *Conn) looked() {
	if c.unread.CompareAndSwap(true, false) {
		c.uses[unread]--
		c.of.unread--
		c.of.read.Signal()
	}
}

// Use raises the connection to a level until end is called. Waiting makes it the one that has waited for the shortest
// time. end may be called again.
func (c *Conn) Use(level Level) (end func()) {
	if c == nil {
		return func() {}
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.use(level)
}

// use is Use for a caller with the lock.
func (c *Conn) use(level Level) (end func()) {
	c.change(func() { c.uses[level]++ })
	return sync.OnceFunc(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.change(func() { c.uses[level]-- })
	})
}

// Hold keeps the connection open for a request until end is called, however many others come. It reports false, and
// end is nil, if fewer connections than the reserve would be left for others, if the address has as many requests as it
// may have connections, or if the connection was closed for another one.
func (c *Conn) Hold() (end func(), ok bool) {
	if c == nil {
		return func() {}, true
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	reserve := min(l.o.Reserve, l.most/2)
	if c.known {
		reserve /= 2
	}
	switch {
	case c.gone:
		return nil, false
	case c.uses[held] > 0:
	case l.held >= l.most-reserve, !c.known && c.peer.held >= l.o.PerAddress:
		return nil, false
	}
	return c.use(held), true
}

// Know says that the client has shown who it is: the connection is Known from now on, and does not count for its
// address.
func (c *Conn) Know() {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.gone || c.known {
		return
	}
	c.change(func() {
		c.known = true
		c.peer.conns--
		c.uses[Known]++
	})
}

// Leave takes the connection out of the bounds. It reports false if the connection was closed for another one.
func (c *Conn) Leave() bool {
	if c == nil {
		return true
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	ok := !c.gone
	c.of.remove(c)
	return ok
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.Leave()
	return c.Conn.Close()
}

// CloseWrite closes the sending half. net/http calls it so that a client can read the response to a request whose body
// was not read.
func (c *Conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// change lets do change what the connection's level follows from. The caller has the lock.
func (c *Conn) change(do func()) {
	if c.gone {
		return
	}
	c.of.dequeue(c)
	do()
	c.of.enqueue(c)
}

func (c *Conn) level() Level {
	level := unread
	for level > Waiting && c.uses[level] == 0 {
		level--
	}
	return level
}
