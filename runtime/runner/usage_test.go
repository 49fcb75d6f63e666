//go:build unix

package runner

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/runtime"
)

var counted = runtime.Usage{Weights: 1, State: 2, StateLimit: 3, Running: 4, Waiting: 5, Steps: 20, Shares: 21,
	Prefix: &prefix.Stats{Bytes: 6, Budget: 7, Nodes: 8, Lookups: 9, Hits: 10, Keys: 11, Cached: 12, Evicted: 13},
	Disk:   &prefix.DiskStats{Bytes: 14, Budget: 15, Nodes: 16, Loaded: 17, Written: 18, Dropped: 19}}

func (counter) Usage(context.Context) (runtime.Usage, error) { return counted, nil }

// A child reports its usage while it runs requests.
func TestUsage(t *testing.T) {
	r := start(t)
	var wg sync.WaitGroup
	wg.Go(func() { _, _, _ = collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 50}) })
	for range 10 {
		wg.Go(func() {
			u, err := r.Usage(t.Context())
			if diff := cmp.Diff(u, counted); diff != "" || err != nil {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Usage(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = syscall.Kill(r.PID(), syscall.SIGKILL)
	<-r.Done()
	if _, err := r.Usage(t.Context()); !errors.Is(err, ErrDied) {
		t.Errorf("of a dead child: %v", err)
	}
}

// An engine that does not report its usage returns an error.
func TestUsageOfAnother(t *testing.T) {
	if _, err := usage(t.Context(), struct{ runtime.Engine }{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
