package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/loopback"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
	"github.com/opencontainers/go-digest"
)

// FormOptions says which group Form makes.
type FormOptions struct {
	Self    tunnel.Self
	Workers []string // addresses, by rank from 1
	Store   *store.Store
	Name    string // of the model, for messages
	Image   digest.Digest
	Stages  shard.Stages            // layers of the ranks of a pipeline; nil: they have parts of tensors
	Fetched func(done, total int64) // progress of all workers; may be nil
	Log     func(format string, args ...any)
}

// Group is rank 0's end of a group.
type Group struct {
	Conns   []net.Conn // for the commands, by rank from 1; who takes them closes them
	Workers []About    // by rank from 1
	Ring    Ring
	Traffic *Traffic

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// member is a worker while a group forms.
type member struct {
	address string
	rank    int
	conn    *tunnel.Conn
	about   About
}

// Form makes a group with workers: they fetch their parts of the model and start a process for their ranks. An error
// names the worker. The group ends with Close, or when a connection of Conns ends.
func Form(ctx context.Context, o FormOptions) (g *Group, err error) {
	name := make([]byte, 16)
	if _, err := rand.Read(name); err != nil {
		return nil, err
	}
	alive, cancel := context.WithCancel(context.Background())
	g = &Group{Traffic: new(Traffic), cancel: cancel}
	f := &forming{FormOptions: o, Group: g, alive: alive, name: hex.EncodeToString(name), size: len(o.Workers) + 1}
	defer func() {
		if err != nil {
			for _, m := range f.members {
				if m.conn != nil {
					m.conn.Close()
				}
			}
			g.Close()
			g = nil
		}
	}()
	for i, address := range o.Workers {
		f.members = append(f.members, &member{address: address, rank: i + 1})
	}
	if f.handler, err = shards.Handler(o.Store, o.Image); err != nil {
		return g, err
	}
	waiting, ready := context.WithCancel(ctx)
	var waits sync.WaitGroup
	err = f.each(ctx, func(ctx context.Context, m *member) error {
		if err := f.dial(ctx, m); err != nil {
			return err
		}
		waits.Go(func() { f.wait(waiting, m) })
		return f.prepare(ctx, m)
	})
	if err == nil {
		err = f.ring(ctx)
	}
	ready()
	waits.Wait() // no other order comes after the one to start
	if err != nil {
		return g, err
	}
	start := func(_ context.Context, m *member) error { return m.conn.WriteJSON(order{Start: true}) }
	if err := f.each(ctx, start); err != nil {
		return g, err
	}
	for _, m := range f.members {
		g.Conns, g.Workers = append(g.Conns, m.conn), append(g.Workers, m.about)
	}
	return g, nil
}

// Close closes all connections of the group but those for the commands, and waits for their ends.
func (g *Group) Close() {
	g.cancel()
	g.done.Wait()
}

// forming is a call of Form.
type forming struct {
	FormOptions
	*Group
	alive   context.Context // of the group
	name    string
	size    int
	members []*member
	handler http.Handler

	mu      sync.Mutex
	fetched map[int][2]int64 // by rank
}

// each calls do for all members at a time. The first error ends the others.
func (f *forming) each(ctx context.Context, do func(context.Context, *member) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, m := range f.members {
		all.Go(func() {
			if err := do(ctx, m); err != nil {
				cancel(fmt.Errorf("rank %d on %s: %w", m.rank, m.address, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// dial connects to a worker.
func (f *forming) dial(ctx context.Context, m *member) (err error) {
	d := rankDetail{Group: f.name, Rank: m.rank, Size: f.size, Name: f.Name, Image: f.Image, Stages: f.Stages}
	if m.rank < len(f.members) {
		d.Next = f.members[m.rank].address
	}
	m.conn, err = tunnel.Dial(ctx, m.address, f.Self, tunnel.Request{Purpose: purposeRank, Detail: detail(d)})
	return err
}

// prepare waits until a worker has its part of the model.
func (f *forming) prepare(ctx context.Context, m *member) error {
	conn := m.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	for isFetching := false; ; {
		var r report
		_ = conn.SetReadDeadline(time.Now().Add(runtime.Silence))
		err := conn.ReadJSON(&r)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return lost(err)
		case r.Failed != "":
			return errors.New(r.Failed)
		case r.Ready != nil:
			m.about = *r.Ready
			return conn.SetReadDeadline(time.Time{})
		case r.Fetch && !isFetching:
			isFetching = true
			for range shards.Connections {
				if err := f.store(ctx, m); err != nil {
					return err
				}
			}
		default:
			f.progress(m.rank, r)
		}
	}
}

// lost says that a worker ended or does not answer.
func lost(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("it %w for %v", runtime.ErrSilent, runtime.Silence)
	}
	return fmt.Errorf("the connection ended: %w", err)
}

// wait tells a worker that rank 0 still waits for it.
func (f *forming) wait(ctx context.Context, m *member) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if m.conn.WriteJSON(order{}) != nil {
				return
			}
		}
	}
}

func (f *forming) progress(rank int, r report) {
	if f.Fetched == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fetched == nil {
		f.fetched = map[int][2]int64{}
	}
	f.fetched[rank] = [2]int64{r.Fetched, r.Total}
	var done, total int64
	for _, one := range f.fetched {
		done, total = done+one[0], total+one[1]
	}
	f.Fetched(done, total)
}

// store serves the image's blobs on a connection to a worker, until the worker or the group ends it.
func (f *forming) store(ctx context.Context, m *member) error {
	r := tunnel.Request{Purpose: purposeStore, Detail: detail(groupDetail{f.name})}
	conn, err := tunnel.Dial(ctx, m.address, f.Self, r)
	if err != nil {
		return err
	}
	one := make(chan net.Conn, 1)
	one <- conn
	listener := shards.NewListener(one)
	server := &http.Server{
		Handler: f.handler, ReadHeaderTimeout: 0, MaxHeaderBytes: 64 << 10,
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				listener.Close()
			}
		},
	}
	f.done.Go(func() {
		stop := context.AfterFunc(f.alive, func() { server.Close() })
		defer stop()
		_ = server.Serve(listener) // ends with the connection
		server.Close()
	})
	return nil
}

// ring makes rank 0's two links of the ring.
func (f *forming) ring(ctx context.Context) error {
	l, err := net.Listen("tcp", loopback.Any)
	if err != nil {
		return err
	}
	own, err := loopback.Reserve()
	if err != nil {
		l.Close()
		return err
	}
	f.Ring = Ring{Rank: 0, Size: f.size, Own: own.Number, Next: l.Addr().(*net.TCPAddr).Port}
	first, last := f.members[0], f.members[len(f.members)-1]
	request := func(purpose string) tunnel.Request {
		return tunnel.Request{Purpose: purpose, Detail: detail(groupDetail{f.name})}
	}
	back, err := tunnel.Dial(ctx, last.address, f.Self, request(purposeBack))
	if err != nil {
		l.Close()
		own.Close()
		return err
	}
	f.done.Go(func() {
		err := joinRing(f.alive, l, f.Traffic, func(ctx context.Context) (net.Conn, error) {
			return tunnel.Dial(ctx, first.address, f.Self, request(purposeRing))
		})
		f.ended("to rank 1", err)
	})
	f.done.Go(func() {
		defer own.Close()
		f.ended("to the last rank", acceptNext(f.alive, back, own.Number, f.Traffic))
	})
	return nil
}

func (f *forming) ended(link string, err error) {
	if err != nil && f.alive.Err() == nil && f.Log != nil {
		f.Log("the ring's connection %s: %v", link, err)
	}
}

// joinRing waits for the connection of this machine's rank to the next one, and passes it on to one that dial makes.
func joinRing(
	ctx context.Context, l net.Listener, t *Traffic, dial func(context.Context) (net.Conn, error),
) error {
	own, err := acceptRing(ctx, l, t)
	if err != nil {
		return err
	}
	other, err := dial(ctx)
	if err != nil {
		own.Close()
		return err
	}
	pipe(ctx, own, other)
	return nil
}

// acceptNext waits until the other end has a connection of its rank, which it says with one byte, and passes it on to
// the ring of this machine's rank.
func acceptNext(ctx context.Context, other net.Conn, port int, t *Traffic) error {
	stop := context.AfterFunc(ctx, func() { other.Close() })
	defer stop()
	if _, err := other.Read(make([]byte, 1)); err != nil {
		other.Close()
		return err
	}
	own, err := dialRing(ctx, port, t)
	if err != nil {
		other.Close()
		return err
	}
	pipe(ctx, own, other)
	return nil
}

// pipe is tunnel.Pipe until ctx ends.
func pipe(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() {
		a.Close()
		b.Close()
	})
	defer stop()
	tunnel.Pipe(a, b)
}

// Ask returns what a worker says of its machine.
func Ask(ctx context.Context, self tunnel.Self, address string) (a About, err error) {
	c, err := tunnel.Dial(ctx, address, self, tunnel.Request{Purpose: purposeAbout})
	if err != nil {
		return a, err
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(runtime.Silence))
	return a, c.ReadJSON(&a)
}
