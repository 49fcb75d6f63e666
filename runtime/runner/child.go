package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// Load loads the model of a child and reports its progress, 0 to 1.
type Load func(ctx context.Context, progress func(part float64)) (runtime.Engine, error)

// Serve is the child's end: it loads a model, reports that it is ready, and runs requests until its input ends, which
// happens at the latest when the parent ends. It then closes the model. If the process still runs 10 s later, because
// it hangs in the engine, it kills itself. An error of load is sent to the parent and returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, load Load) error {
	return serve(ctx, in, out, load, defaultGrace)
}

func serve(ctx context.Context, in io.Reader, out io.Writer, load Load, grace time.Duration) error {
	returned := make(chan struct{})
	defer close(returned)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &childState{out: &lines{w: out}, running: map[uint64]context.CancelFunc{}}
	input := make(chan toChild)
	go func() { // started before the model loads, so that the end of the input cancels the load
		read(ctx, in, input)
		cancel()
		select {
		case <-returned:
		case <-time.After(grace): // a call into the engine hangs
			die()
		}
	}()
	alive := make(chan struct{})
	defer close(alive)
	var within atomic.Int64
	within.Store(int64(runtime.Hang))
	go c.showLife(&within, alive)
	engine, err := load(ctx, func(part float64) { _ = c.out.write(toParent{Loaded: part}) })
	if err != nil {
		_ = c.out.write(toParent{Error: wireError(err)})
		return err
	}
	defer engine.Close()
	if err := c.out.write(toParent{Ready: true, GPU: onGPU(engine)}); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ended, reason := groupOf(engine)
	if ended != nil { // other ranks wait for this one
		within.Store(int64(runtime.Silence))
	}
	for {
		select {
		case <-ended: // all requests fail from now on; the parent may start another child
			err := reason()
			_ = c.out.write(toParent{Error: wireError(err)})
			return err
		case <-ctx.Done(): // the input or the caller's context has ended
			return nil
		case m := <-input:
			switch {
			case m.Cancel:
				c.cancel(m.ID)
			case m.Usage:
				wg.Go(func() { c.usage(ctx, engine, m.ID) })
			case m.Generate != nil || m.Embed != nil:
				one, stop := context.WithCancel(ctx)
				c.register(m.ID, stop)
				wg.Go(func() {
					defer c.cancel(m.ID)
					c.run(m.ID, func() error {
						if m.Embed != nil {
							return c.embed(one, engine, m.ID, *m.Embed)
						}
						return c.generate(one, engine, m.ID, *m.Generate)
					})
				})
			}
		}
	}
}

// lifeInterval is the time between signs of life.
const lifeInterval = time.Second

// showLife sends signs of life, each of which says in what time the next one comes at the latest.
func (c *childState) showLife(within *atomic.Int64, stop <-chan struct{}) {
	tick := time.NewTicker(lifeInterval)
	defer tick.Stop()
	for c.out.write(toParent{Alive: int(time.Duration(within.Load()) / time.Second)}) == nil {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// groupOf returns what says that the group of ranks of an engine has ended, and why it has. Engines without the methods
// have no group.
func groupOf(e runtime.Engine) (<-chan struct{}, func() error) {
	g, ok := e.(interface {
		Ended() <-chan struct{}
		Err() error
	})
	if !ok {
		return nil, nil
	}
	return g.Ended(), g.Err
}

// onGPU reports whether a model computes on a GPU. Engines without the method do not.
func onGPU(e runtime.Engine) bool {
	g, ok := e.(interface{ GPU() bool })
	return ok && g.GPU()
}

// read decodes messages and passes them on until the input ends.
func read(ctx context.Context, in io.Reader, to chan<- toChild) {
	d := json.NewDecoder(bufio.NewReaderSize(in, 1<<16))
	for {
		var m toChild
		if d.Decode(&m) != nil {
			return
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return
		}
	}
}

// childState is the state of Serve.
type childState struct {
	out     *lines
	mu      sync.Mutex
	running map[uint64]context.CancelFunc
}

func (c *childState) register(id uint64, stop context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id] = stop
}

// cancel cancels a request, if it is still running.
func (c *childState) cancel(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.running[id]; stop != nil {
		stop()
		delete(c.running, id)
	}
}

// usage reports the engine's usage.
func (c *childState) usage(ctx context.Context, engine runtime.Engine, id uint64) {
	last := toParent{ID: id, Ended: true}
	u, err := usage(ctx, engine)
	if err != nil {
		last.Error = wireError(err)
	} else {
		last.Usage = &u
	}
	_ = c.out.write(last)
}

func usage(ctx context.Context, engine runtime.Engine) (runtime.Usage, error) {
	r, ok := engine.(runtime.Reporter)
	if !ok {
		return runtime.Usage{}, fmt.Errorf("the usage of a %T: %w", engine, errors.ErrUnsupported)
	}
	return r.Usage(ctx)
}

// run runs a request and reports how it ended. A panic ends only this request.
func (c *childState) run(id uint64, run func() error) {
	last := toParent{ID: id, Ended: true}
	defer func() {
		if p := recover(); p != nil {
			last.Error = wireError(fmt.Errorf("the request failed by a fault of the program: %v", p))
		}
		_ = c.out.write(last)
	}()
	if err := run(); err != nil {
		last.Error = wireError(err)
	}
}

func (c *childState) generate(ctx context.Context, engine runtime.Engine, id uint64, r runtime.Request) error {
	r.Queued = func() { _ = c.out.write(toParent{ID: id, Queued: true}) } // the next message reports a failed write
	for e, err := range engine.Generate(ctx, r) {
		if err != nil {
			return err
		}
		if err := c.send(toParent{ID: id, Event: wireEvent(e)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *childState) embed(ctx context.Context, engine runtime.Engine, id uint64, r runtime.EmbedRequest) error {
	e, err := runtime.Embed(ctx, engine, r)
	if err != nil {
		return err
	}
	for _, v := range e.Vectors {
		if err := c.send(toParent{ID: id, Vector: wireVector(v)}); err != nil {
			return err
		}
	}
	return nil
}

// errGone ends a request when the parent no longer reads.
var errGone = errors.New("the parent is gone")

func (c *childState) send(m toParent) error {
	err := c.out.write(m)
	if errors.Is(err, io.ErrClosedPipe) {
		return errGone
	}
	return err
}
