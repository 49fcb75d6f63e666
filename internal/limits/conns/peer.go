package conns

import (
	"container/heap"
	"container/list"
	"net"
	"net/netip"
)

// address is what the connections of one client have in common.
type address = netip.Prefix

// clientBits are the bits of an IPv6 address that its network has: one machine has all addresses with them.
const clientBits = 64

// addressOf returns the address of a connection's other end. Connections that are not of IP share one.
func addressOf(a net.Addr) address {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return address{}
	}
	return Client(tcp.AddrPort().Addr())
}

// Client returns the addresses that one client has beside this one: its network with IPv6, and all of 127.0.0.0/8 and
// ::1 for a client on this machine.
func Client(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	switch {
	case ip.IsLoopback():
		ip, bits = netip.IPv6Loopback(), 128
	case ip.Is6():
		bits = clientBits
	}
	p, _ := ip.Prefix(bits) // the zero prefix if there is no address
	return p
}

// peer has the connections of an address.
type peer struct {
	address address
	all     int               // connections
	conns   int               // that are not Known
	held    int               // of these
	waiting [levels]list.List // of Conns, the one whose level has stayed for the longest time first
	at      [levels]int       // in the queue of the level; -1: it is not in it
}

func newPeer(a address) *peer {
	p := &peer{address: a}
	for i := range p.at {
		p.at[i] = -1
	}
	return p
}

// enqueue puts a connection among those of its level.
func (l *Listener) enqueue(c *Conn) {
	level, p := c.level(), c.peer
	switch level {
	case unread:
		return
	case held:
		l.held++
		if !c.known {
			p.held++
		}
		return
	}
	l.counts[level]++
	c.at = p.waiting[level].PushBack(c)
	if p.at[level] < 0 {
		heap.Push(&l.queues[level], p)
	} else {
		heap.Fix(&l.queues[level], p.at[level])
	}
}

// dequeue is the opposite of enqueue.
func (l *Listener) dequeue(c *Conn) {
	level, p := c.level(), c.peer
	switch level {
	case unread:
		return
	case held:
		l.held--
		if !c.known {
			p.held--
		}
		return
	}
	l.counts[level]--
	p.waiting[level].Remove(c.at)
	c.at = nil
	if p.waiting[level].Len() == 0 {
		heap.Remove(&l.queues[level], p.at[level])
	} else {
		heap.Fix(&l.queues[level], p.at[level])
	}
}

// queue has the peers that have connections of a level, as a heap: the one with most of them is first.
type queue struct {
	level Level
	list  []*peer
}

// Len implements sort.Interface.
func (q *queue) Len() int { return len(q.list) }

// Less implements sort.Interface.
func (q *queue) Less(i, j int) bool {
	return q.list[i].waiting[q.level].Len() > q.list[j].waiting[q.level].Len()
}

// Swap implements sort.Interface.
func (q *queue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].at[q.level], q.list[j].at[q.level] = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	p := x.(*peer)
	p.at[q.level] = len(q.list)
	q.list = append(q.list, p)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.list) - 1
	p := q.list[last]
	q.list[last] = nil
	q.list = q.list[:last]
	p.at[q.level] = -1
	return p
}
