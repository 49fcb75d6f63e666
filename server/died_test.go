package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

var errKilled = fmt.Errorf("%w: signal: killed", runner.ErrDied)

// dying is a model whose process dies during its first request.
type dying struct {
	*servertest.Parrot
	queues bool // before it dies
	says   int  // pieces before it dies
	done   chan struct{}
	once   sync.Once
}

func (d *dying) Done() <-chan struct{} { return d.done }

func (d *dying) Generate(_ context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		if d.queues && r.Queued != nil {
			r.Queued()
		}
		for i := range d.says {
			if !yield(runtime.Event{IDs: []int32{int32(i)}, Text: "so far "}, nil) {
				return
			}
		}
		d.once.Do(func() { close(d.done) })
		yield(runtime.Event{}, errKilled)
	}
}

// A request whose model's process dies before it has said anything goes on with a new process, once.
func TestProcessDies(t *testing.T) {
	for name, c := range map[string]struct {
		dies   int // how many processes die
		loads  bool
		queues bool
		says   int
		ok     bool
		want   int // processes
	}{
		"idle":                        {1, false, false, 0, true, 2},
		"while the request is queued": {1, false, true, 0, true, 2},
		"during the load":             {1, true, false, 0, true, 2},
		"each time":                   {9, false, true, 0, false, 2},
		"during each load":            {9, true, false, 0, false, 2},
		"after the first piece":       {1, false, true, 1, false, 1},
	} {
		for _, q := range requests {
			if q.path == "/api/show" || q.path == "/api/embed" {
				continue
			}
			t.Run(name+q.path, func(t *testing.T) {
				var begun atomic.Int32
				f := serve(t, func(o *server.Options) {
					o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
						if int(begun.Add(1)) > c.dies {
							return servertest.NewParrot("again"), nil
						}
						if c.loads {
							return nil, errKilled
						}
						return &dying{Parrot: servertest.NewParrot(), queues: c.queues, says: c.says,
							done: make(chan struct{})}, nil
					}
				})
				status, text := f.Ask(t, http.MethodPost, q.path, fmt.Sprintf(q.body, "talk"))
				failed := status != http.StatusOK || strings.Contains(text, "signal: killed")
				if failed == c.ok || c.ok != strings.Contains(text, "again") || strings.Count(text, "again") > 4 {
					t.Errorf("status %d: %s", status, text)
				}
				if got := int(begun.Load()); got != c.want {
					t.Errorf("%d processes are started, want %d", got, c.want)
				}
				if strings.Contains(text, "so far") && strings.Contains(text, "again") {
					t.Errorf("the response begins twice: %s", text)
				}
			})
		}
	}
}

// Requests of many clients share the new process.
func TestProcessDiesUnderManyRequests(t *testing.T) {
	var begun atomic.Int32
	f := serve(t, func(o *server.Options) {
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			if begun.Add(1) == 1 {
				return &dying{Parrot: servertest.NewParrot(), queues: true, done: make(chan struct{})}, nil
			}
			return servertest.NewParrot("again"), nil
		}
	})
	var wg sync.WaitGroup
	for range 20 {
		for _, q := range requests {
			if q.path != "/api/show" && q.path != "/api/embed" {
				wg.Go(func() { f.Has(t, "POST", q.path, fmt.Sprintf(q.body, "talk"), http.StatusOK, "again") })
			}
		}
	}
	wg.Wait()
	if n := begun.Load(); n != 2 {
		t.Errorf("%d processes are started", n)
	}
}
