package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ingotml/ingot/runtime/divide"
)

// relay accepts one connection and passes it on to an address, which may not listen yet, as a link does. It returns the
// address to connect to.
func relay(ctx context.Context, to string, link divide.Link) (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		defer l.Close()
		a, err := l.Accept()
		if err != nil {
			return
		}
		b, err := dial(ctx, to)
		if err != nil {
			a.Close()
			return
		}
		stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
		defer stop()
		var both sync.WaitGroup
		both.Go(func() { carry(a, b, link) })
		both.Go(func() { carry(b, a, link) })
		both.Wait()
	}()
	return l.Addr().String(), nil
}

func dial(ctx context.Context, to string) (net.Conn, error) {
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", to)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// piece is bytes that arrive at a time.
type piece struct {
	b  []byte
	at time.Time
}

// carry copies bytes from one connection to another: each leaves when the link has sent those before, and arrives after
// the latency.
func carry(from, to net.Conn, link divide.Link) {
	defer to.Close()
	pieces := make(chan piece, 4096)
	go func() {
		defer close(pieces)
		var free time.Time // when the link has sent everything
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 {
				if now := time.Now(); free.Before(now) {
					free = now
				}
				free = free.Add(time.Duration(float64(n) / link.Bandwidth * float64(time.Second)))
				pieces <- piece{b[:n], free.Add(time.Duration(link.Latency * float64(time.Second)))}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		sleepUntil(p.at)
		if _, err := to.Write(p.b); err != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}
