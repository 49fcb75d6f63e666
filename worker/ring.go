package worker

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/internal/loopback"
)

// dialRingFor is how long the ring's listener may need to be there: the process of a rank loads the engine before.
const dialRingFor = 60 * time.Second

// Traffic counts the bytes that a rank's ring has exchanged with other machines.
type Traffic struct{ sent, received atomic.Int64 }

// Sent and Received return the numbers of bytes.
func (t *Traffic) Sent() int64     { return t.sent.Load() }
func (t *Traffic) Received() int64 { return t.received.Load() }

// countedConn counts the bytes of a connection of the engine's ring: what it reads is sent to another machine.
type countedConn struct {
	net.Conn
	traffic *Traffic
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.sent.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.received.Add(int64(n))
	return n, err
}

// CloseWrite tells the engine that no more bytes follow.
func (c countedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// dialRing connects to the ring of this machine's rank, as soon as it listens.
func dialRing(ctx context.Context, port int, t *Traffic) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialRingFor)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", loopback.Addr(port))
		if err == nil {
			return countedConn{c, t}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the engine's ring does not listen: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// acceptRing returns the connection that this machine's rank makes in place of one to the next rank. It closes the
// listener.
func acceptRing(ctx context.Context, l net.Listener, t *Traffic) (net.Conn, error) {
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{c, t}, nil
}

// Ring says where the engine's ring of a rank listens and connects to.
type Ring struct {
	Rank, Size int
	Own, Next  int // ports of 127.0.0.1
}

// Hosts returns the content of the file that MLX_HOSTFILE names. A rank uses its own address and the
// next one's; the others are wrong.
func (r Ring) Hosts() []byte {
	addresses := slices.Repeat([]string{loopback.Addr(1)}, r.Size)
	addresses[r.Rank] = loopback.Addr(r.Own)
	addresses[(r.Rank+1)%r.Size] = loopback.Addr(r.Next)
	return loopback.Hosts(addresses...)
}
