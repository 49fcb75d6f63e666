package batch

import (
	"context"
	goruntime "runtime"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/ranks"
)

// Usage implements Reporter. It waits for the current step.
func (e *Engine) Usage(ctx context.Context) (u runtime.Usage, err error) {
	err = e.model.Do(ctx, func() error {
		u.Weights = e.model.Weights.Bytes()
		u.Ranks = e.ranks.Usage(ranks.Measure(e.model.Thread, u.Weights))
		if e.prefixes.tree != nil {
			s := e.prefixes.tree.Stats()
			u.Prefix = &s
		}
		return nil
	})
	if err != nil {
		return runtime.Usage{}, err
	}
	if e.prefixes.disk != nil {
		s := e.prefixes.disk.Stats()
		u.Disk = &s
	}
	waiting, counters := e.batcher.queue.read()
	u.StateLimit = e.batcher.memory.perRequest
	u.Waiting, u.Goroutines = waiting, goruntime.NumGoroutine()
	u.Running, u.State = counters.running, counters.stateBytes
	u.Steps, u.Shares = counters.steps, counters.batchSizeSum
	return u, nil
}
