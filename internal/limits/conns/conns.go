// Package conns bounds the open connections of a listener, and closes those that matter least when there are too many.
//
// Contract:
//   - A new connection is accepted at once. If it is one too many, an older one is closed: one of the lowest [Level],
//     of the address with most connections of that level, the one whose level has stayed for the longest time. So who
//     opens many connections loses those, and a connection with a request never goes while an idle one is left.
//   - Some places stay with the lower levels, so that a new connection has the time to rise: a quarter with those that
//     are Waiting, which could else be kept out by ones that have Begun, and a sixteenth with both.
//   - A connection is not closed before its owner has begun to read from it, and the listener accepts few that it has
//     not. So none is closed because the owner is slow, and not the client.
//   - A bound per address holds besides, for connections that are not [Known]. An address is one of IPv4, the first 64
//     bits of one of IPv6, or this machine: a client has all addresses of such a range.
//   - The owner says what a connection is used for ([Conn.Use], [Conn.Hold], [Conn.Know]) as it finds out.
//   - If the process has no file left for a connection, the listener closes connections and keeps fewer for a while.
//   - All types are safe for concurrent use. The methods of a nil [Conn] do nothing.
package conns

import (
	"container/list"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// Level says how much a connection matters. Those of a lower level are closed first.
type Level int

// Levels of connections.
const (
	Waiting Level = iota // nothing is known of it, or it has no request
	Begun                // a request is being received
	Known                // its client has shown who it is
	held                 // it has a request, so it is not closed for another one
	unread               // its owner has not read from it, which says nothing of it

	levels = int(held) // that are closed for others
)

// The places that stay with lower levels, as parts of all.
const (
	waitingPart = 4  // with Waiting, before Begun
	lowerPart   = 16 // with Waiting and Begun, before Known
)

// Options configure a listener.
type Options struct {
	Most       int // open connections
	PerAddress int // connections of one address that are not Known; 0: Most
	// Reserve is how many of Most, but at most half, Hold leaves to others, and half as many if the connection is Known.
	Reserve int
	// Random closes any connection of the level and the address, not the one whose level has stayed for the longest
	// time. That one is the next to finish if all are used for a short time only.
	Random bool
	// Closed is called for each connection that is closed for another one. It may be nil.
	Closed func(from net.Addr)
	// Fewer is called when the process has no file left for more connections than that. It may be nil.
	Fewer func(most int)
}

// Listener is a listener whose connections are Conns.
type Listener struct {
	net.Listener
	o Options

	mu        sync.Mutex
	most      int
	open      int
	held      int
	counts    [levels]int // of connections that are not held
	unread    int         // connections that their owner has not read from
	accepted  int
	closed    bool
	read      *sync.Cond // unread or closed has changed
	addresses map[address]*peer
	queues    [levels]queue
}

// mostUnread bounds the connections that their owner has not read from: further ones wait in the system's queue.
func (l *Listener) mostUnread() int { return max(min(64, l.most/8, l.o.PerAddress/8), 1) }

// Limit returns a listener that accepts the connections of another one.
func Limit(l net.Listener, o Options) *Listener {
	if o.PerAddress <= 0 {
		o.PerAddress = o.Most
	}
	out := &Listener{Listener: l, o: o, most: o.Most, addresses: map[address]*peer{}}
	out.read = sync.NewCond(&out.mu)
	for i := range out.queues {
		out.queues[i].level = Level(i)
	}
	return out
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		if !l.await() {
			return nil, net.ErrClosed
		}
		raw, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.shrink() {
				continue
			}
			return nil, err
		}
		c := &Conn{Conn: raw, of: l}
		victim, ok := l.add(c)
		l.drop(victim)
		if ok {
			return c, nil
		}
		c.gone = true
		l.drop(c)
	}
}

// await waits until the owner has read from enough connections. It reports false if the listener is closed.
func (l *Listener) await() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.unread >= l.mostUnread() && !l.closed {
		l.read.Wait()
	}
	return !l.closed
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.read.Broadcast()
	return l.Listener.Close()
}

// drop closes a connection that the table does not have any more.
func (l *Listener) drop(c *Conn) {
	if c == nil {
		return
	}
	from := c.RemoteAddr()
	_ = c.Conn.Close()
	if l.o.Closed != nil {
		l.o.Closed(from)
	}
}

// add puts a connection into the table, and takes another one out if it is one too many.
func (l *Listener) add(c *Conn) (victim *Conn, ok bool) {
	at := addressOf(c.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.addresses[at]; p != nil && p.conns >= l.o.PerAddress {
		victim = l.victimOf(p) // nil: it has as many requests, and gets no more
	}
	if victim == nil && l.open >= l.most {
		if victim = l.victim(); victim == nil {
			return nil, false
		}
	}
	if victim != nil {
		l.remove(victim)
	}
	p := l.addresses[at]
	if p == nil {
		p = newPeer(at)
		l.addresses[at] = p
	}
	c.peer = p
	c.unread.Store(true)
	c.uses[Waiting], c.uses[unread] = 1, 1
	l.unread++
	l.open++
	if l.accepted++; l.most < l.o.Most && l.accepted%afterConns == 0 {
		l.most++
	}
	p.all++
	p.conns++
	l.enqueue(c)
	return victim, true
}

// victim returns the connection that matters least, or nil if all are held.
func (l *Listener) victim() *Conn {
	level := lowest(l.counts, l.most)
	if level == held {
		return nil
	}
	return l.pick(&l.queues[level].list[0].waiting[level])
}

// victimOf returns the connection of an address that matters least, or nil if all are held or Known.
func (l *Listener) victimOf(p *peer) *Conn {
	level := lowest([levels]int{p.waiting[Waiting].Len(), p.waiting[Begun].Len()}, l.o.PerAddress)
	if level == held {
		return nil
	}
	return l.pick(&p.waiting[level])
}

// lowest returns the level that loses a connection, by how many of each there are and how many there may be in all.
func lowest(counts [levels]int, most int) Level {
	w, b, k := counts[Waiting], counts[Begun], counts[Known]
	switch {
	case k > 0 && w+b <= most/lowerPart:
		return Known
	case b > 0 && w <= most/waitingPart:
		return Begun
	case w > 0:
		return Waiting
	case b > 0:
		return Begun
	case k > 0:
		return Known
	}
	return held
}

// pick returns one of the connections of a level of an address.
func (l *Listener) pick(waiting *list.List) *Conn {
	e := waiting.Front()
	if l.o.Random {
		for range rand.IntN(waiting.Len()) {
			e = e.Next()
		}
	}
	return e.Value.(*Conn)
}

// remove takes a connection out of the table. The caller closes it.
func (l *Listener) remove(c *Conn) {
	if c.gone {
		return
	}
	l.dequeue(c)
	c.looked()
	c.gone = true
	l.open--
	p := c.peer
	p.all--
	if !c.known {
		p.conns--
	}
	if p.all == 0 {
		delete(l.addresses, p.address)
	}
}

// When the process has no more files, connections keep all but a part of theirs, and at least a few. They get one back
// after a number of connections, in case that the process needed the files for a short time.
const (
	filesPart  = 8
	leastFiles = 16
	afterConns = 16
)

// shrink leaves some of the files of connections to the rest of the process. It reports whether it closed any.
func (l *Listener) shrink() bool {
	l.mu.Lock()
	l.most = min(l.most, max(l.open-l.open/filesPart, leastFiles))
	most := l.most
	var victims []*Conn
	for l.open > l.most || len(victims) == 0 {
		c := l.victim()
		if c == nil {
			break
		}
		l.remove(c)
		victims = append(victims, c)
	}
	l.mu.Unlock()
	for _, c := range victims {
		l.drop(c)
	}
	if len(victims) > 0 && l.o.Fewer != nil {
		l.o.Fewer(most)
	}
	return len(victims) > 0
}

// Counts returns how many connections are open, how many of them have requests that keep them open, and how many there
// may be.
func (l *Listener) Counts() (open, held, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.held, l.most
}
