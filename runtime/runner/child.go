package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ingotml/ingot/runtime"
)

// Serve is the child's end: it loads a model, says that it is ready, and runs requests until its input ends, which happens at the latest
// when the parent does. The model is closed then. An error of load is told to the parent and returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, load func(ctx context.Context, progress func(part float64)) (runtime.Engine, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &child{out: &lines{w: out}, running: map[uint64]context.CancelFunc{}}
	input := make(chan toChild)
	go func() { // also while the model loads: the end of the input ends that too
		defer cancel()
		d := json.NewDecoder(bufio.NewReaderSize(in, 1<<16))
		for {
			var m toChild
			if d.Decode(&m) != nil {
				return
			}
			select {
			case input <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	engine, err := load(ctx, func(part float64) { _ = c.out.write(toParent{Loaded: part}) })
	if err != nil {
		_ = c.out.write(toParent{Error: wireError(err)})
		return err
	}
	defer engine.Close()
	if err := c.out.write(toParent{Ready: true}); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done(): // the end of the input, or the caller's
			return nil
		case m := <-input:
			switch {
			case m.Cancel:
				c.cancel(m.ID)
			case m.Usage:
				wg.Go(func() { c.usage(ctx, engine, m.ID) })
			case m.Generate != nil:
				one, stop := context.WithCancel(ctx)
				c.add(m.ID, stop)
				wg.Go(func() {
					defer c.cancel(m.ID)
					c.generate(one, engine, m.ID, *m.Generate)
				})
			}
		}
	}
}

type child struct {
	out     *lines
	mu      sync.Mutex
	running map[uint64]context.CancelFunc
}

func (c *child) add(id uint64, stop context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id] = stop
}

// cancel ends a request; one that has ended already is not there.
func (c *child) cancel(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.running[id]; stop != nil {
		stop()
		delete(c.running, id)
	}
}

// usage tells how the engine does.
func (c *child) usage(ctx context.Context, engine runtime.Engine, id uint64) {
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

// generate runs a request. A panic in it is its own error.
func (c *child) generate(ctx context.Context, engine runtime.Engine, id uint64, r runtime.Request) {
	last := toParent{ID: id, Ended: true}
	defer func() {
		if p := recover(); p != nil {
			last.Error = wireError(fmt.Errorf("the request failed by a fault of the program: %v", p))
		}
		_ = c.out.write(last)
	}()
	for e, err := range engine.Generate(ctx, r) {
		if err != nil {
			last.Error = wireError(err)
			return
		}
		if err := c.out.write(toParent{ID: id, Event: wireEvent(e)}); err != nil {
			if !errors.Is(err, io.ErrClosedPipe) {
				last.Error = wireError(err)
			}
			return
		}
	}
}
