package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/loopback"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
	"github.com/opencontainers/go-digest"
)

// ServeOptions configures a worker.
type ServeOptions struct {
	Self   tunnel.Self
	Folder *shards.Folder
	About  About
	Log    func(format string, args ...any)
	// Command returns the program that runs a rank. Its standard input and output carry the commands.
	Command func(Rank) *child.Cmd
}

// Rank is what a worker's process runs.
type Rank struct {
	Ring  Ring
	Image digest.Digest
	Shard shards.Shard
	Name  string // of the model, for messages
}

// Serve runs a worker until ctx ends. It closes the listener.
func Serve(ctx context.Context, l net.Listener, o ServeOptions) error {
	s := &server{ServeOptions: o, groups: map[string]*group{}}
	return tunnel.Serve(ctx, l, o.Self, o.Log, s.handle)
}

type server struct {
	ServeOptions
	mu     sync.Mutex
	groups map[string]*group // by their names
}

// group is a worker's part of a group.
type group struct {
	rankDetail
	ctx     context.Context
	stores  chan net.Conn // connections to rank 0's store
	back    chan net.Conn // the one to rank 0's ring, of the last rank; capacity 1
	own     int           // the port of the ring
	traffic Traffic
	ready   chan struct{} // closed when own is known
	mu      sync.Mutex
	linked  map[string]bool // purposes that allow one connection and have it
}

func (s *server) handle(ctx context.Context, r tunnel.Request, accept func() (*tunnel.Conn, error)) error {
	switch r.Purpose {
	case purposeAbout:
		c, err := accept()
		if err != nil {
			return err
		}
		return c.WriteJSON(s.About)
	case purposeRank:
		return s.rank(ctx, r.Detail, accept)
	}
	var d groupDetail
	if err := json.Unmarshal(r.Detail, &d); err != nil {
		return fmt.Errorf("the detail of %q: %w", r.Purpose, err)
	}
	s.mu.Lock()
	g := s.groups[d.Group]
	s.mu.Unlock()
	if g == nil {
		return errors.New("there is no such group")
	}
	return g.handle(r.Purpose, accept)
}

// handle serves a connection of a group, until it or the group ends.
func (g *group) handle(purpose string, accept func() (*tunnel.Conn, error)) error {
	var to chan net.Conn
	switch {
	case purpose == purposeStore:
		to = g.stores
	case purpose == purposeBack && g.Next == "":
		to = g.back
	case purpose != purposeRing:
		return fmt.Errorf("rank %d has no connection %q", g.Rank, purpose)
	}
	if purpose != purposeStore && !g.once(purpose) {
		return fmt.Errorf("rank %d has a connection %q already", g.Rank, purpose)
	}
	c, err := accept()
	if err != nil {
		return err
	}
	if to != nil {
		select {
		case to <- c:
			<-g.ctx.Done()
		case <-g.ctx.Done():
		}
		return nil
	}
	select {
	case <-g.ready:
	case <-g.ctx.Done():
		return nil
	}
	own, err := dialRing(g.ctx, g.own, &g.traffic)
	if err != nil {
		if g.ctx.Err() != nil {
			return nil
		}
		return err
	}
	pipe(g.ctx, own, c)
	return nil
}

func (g *group) once(purpose string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.linked[purpose]
	g.linked[purpose] = true
	return first
}

// rank runs a rank of a group until the group ends.
func (s *server) rank(ctx context.Context, detail json.RawMessage, accept func() (*tunnel.Conn, error)) error {
	var d rankDetail
	if err := json.Unmarshal(detail, &d); err != nil {
		return fmt.Errorf("the detail of a rank: %w", err)
	}
	if err := d.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &group{
		rankDetail: d, ctx: ctx, stores: make(chan net.Conn, shards.Connections), back: make(chan net.Conn, 1),
		ready: make(chan struct{}), linked: map[string]bool{},
	}
	s.mu.Lock()
	_, taken := s.groups[d.Group]
	if !taken {
		s.groups[d.Group] = g
	}
	s.mu.Unlock()
	if taken {
		return errors.New("this worker has a rank of the group already")
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.groups, d.Group)
	}()
	c, err := accept()
	if err != nil {
		return err
	}
	s.Log("rank %d of %d of %s: begins", d.Rank, d.Size, d.Name)
	started := make(chan struct{})
	go func() { // rank 0's orders, before its commands
		for {
			var o order
			_ = c.SetReadDeadline(time.Now().Add(runtime.Silence))
			if err := c.ReadJSON(&o); err != nil {
				cancel(fmt.Errorf("rank 0: %w", lost(err)))
				return
			}
			if !o.Start {
				continue
			}
			select {
			case <-g.ready:
				_ = c.SetReadDeadline(time.Time{})
				close(started)
			default: // nobody would notice the end of the connection while the parts are fetched
				cancel(errors.New("rank 0 starts the rank before it is ready"))
			}
			return
		}
	}()
	shard, err := s.prepare(g, c)
	if err == nil {
		err = s.run(g, c, shard, started)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		select {
		case <-started: // the connection has commands now
		default:
			_ = c.WriteJSON(report{Failed: err.Error()})
		}
		return fmt.Errorf("rank %d of %d of %s: %w", d.Rank, d.Size, d.Name, err)
	}
	s.Log("rank %d of %d of %s: ended", d.Rank, d.Size, d.Name)
	return nil
}

// prepare fetches what the rank lacks of the model, and reports its progress.
func (s *server) prepare(g *group, c *tunnel.Conn) (shards.Shard, error) {
	var mu sync.Mutex
	var now report
	fetching, stop := context.WithCancel(g.ctx)
	var reports sync.WaitGroup
	defer reports.Wait()
	defer stop()
	reports.Go(func() {
		tick := time.NewTicker(reportInterval)
		defer tick.Stop()
		for {
			select {
			case <-fetching.Done():
				return
			case <-tick.C:
				mu.Lock()
				r := now
				mu.Unlock()
				if c.WriteJSON(r) != nil {
					return
				}
			}
		}
	})
	var fetch sync.Once
	source := shards.NewSource(func(ctx context.Context) (net.Conn, error) {
		fetch.Do(func() { _ = c.WriteJSON(report{Fetch: true}) })
		ctx, cancel := context.WithTimeout(ctx, runtime.Silence)
		defer cancel()
		select {
		case conn := <-g.stores:
			return conn, nil
		case <-ctx.Done():
			return nil, errors.New("rank 0 offers no connection to its store")
		}
	})
	defer source.Close()
	at := shards.Place{Rank: g.Rank, Size: g.Size, Stages: g.Stages}
	return s.Folder.Prepare(g.ctx, g.Image, at, source, func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		now.Fetched, now.Total = done, total
	})
}

// run starts the rank's process when rank 0 says so, and passes commands on to it until either ends.
func (s *server) run(g *group, c *tunnel.Conn, shard shards.Shard, started <-chan struct{}) error {
	if shard.Fetched > 0 {
		s.Log("rank %d of %d of %s: fetched %d bytes", g.Rank, g.Size, g.Name, shard.Fetched)
	}
	l, err := net.Listen("tcp", loopback.Any)
	if err != nil {
		return err
	}
	defer l.Close()
	own, err := loopback.Reserve()
	if err != nil {
		return err
	}
	defer own.Close()
	g.own = own.Number
	close(g.ready)
	about := s.About
	if err := c.WriteJSON(report{Ready: &about}); err != nil {
		return err
	}
	select {
	case <-started:
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
	var links sync.WaitGroup
	defer links.Wait()
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	links.Go(func() {
		err := joinRing(ctx, l, &g.traffic, func(ctx context.Context) (net.Conn, error) { return s.next(ctx, g) })
		if err != nil && ctx.Err() == nil {
			s.Log("rank %d of %d of %s: the ring's connection to the next rank: %v", g.Rank, g.Size, g.Name, err)
		}
	})
	ring := Ring{Rank: g.Rank, Size: g.Size, Own: g.own, Next: l.Addr().(*net.TCPAddr).Port}
	return runProcess(ctx, s.Command(Rank{ring, g.Image, shard, g.Name}), c.Conn)
}

// next returns the connection to the next rank's machine.
func (s *server) next(ctx context.Context, g *group) (net.Conn, error) {
	if g.Next != "" {
		r := tunnel.Request{Purpose: purposeRing, Detail: detail(groupDetail{g.Group})}
		return tunnel.Dial(ctx, g.Next, s.Self, r)
	}
	select {
	case c := <-g.back:
		_, err := c.Write([]byte{1})
		return c, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// endGrace is how long a rank's process has to end by itself when its commands have ended.
const endGrace = 2 * time.Second

// runProcess runs a rank's process, whose standard input and output are the connection. It ends when the process does,
// or soon after the connection.
func runProcess(ctx context.Context, cmd *child.Cmd, c net.Conn) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	if err := cmd.StartTied(ended); err != nil {
		return fmt.Errorf("start the rank's process: %w", err)
	}
	defer close(ended)
	commands := make(chan struct{})
	go func() { // ends with the connection, which the caller closes
		defer close(commands)
		_, _ = io.Copy(in, c)
		in.Close()
	}()
	replies := make(chan struct{})
	go func() {
		defer close(replies)
		_, _ = io.Copy(c, out)
	}()
	go func() {
		select {
		case <-commands:
			select {
			case <-ended:
				return
			case <-time.After(endGrace):
			}
		case <-ctx.Done():
		case <-ended:
			return
		}
		_ = cmd.Process.Kill()
	}()
	<-replies // before Wait, which closes the pipe
	err = cmd.Wait()
	c.Close()
	<-commands
	if err != nil {
		return fmt.Errorf("the rank's process: %w", err)
	}
	return nil
}
