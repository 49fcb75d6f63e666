package runtime

import (
	"context"

	"github.com/ingotml/ingot/cache/prefix"
)

// Usage is what a model takes and does at a moment. Bytes are of memory where nothing else is said.
type Usage struct {
	Weights    int64             `json:"weights"`     // bytes, also where they are mapped files
	State      int64             `json:"state"`       // bytes of running requests' state
	StateLimit int64             `json:"state_limit"` // most that it may take; 0: no limit
	Running    int               `json:"running"`     // requests
	Waiting    int               `json:"waiting"`     // requests
	Steps      int64             `json:"steps"`       // since the model was loaded
	Shares     int64             `json:"shares"`      // of requests in those steps: shares / steps is the mean size of a batch
	Prefix     *prefix.Stats     `json:"prefix,omitempty"`
	Disk       *prefix.DiskStats `json:"disk,omitempty"`
}

// Reporter is an [Engine] that tells how it does.
type Reporter interface {
	Engine
	Usage(ctx context.Context) (Usage, error)
}

// Usage implements Reporter. It waits for the step at hand.
func (l *Local) Usage(ctx context.Context) (u Usage, err error) {
	err = l.do(ctx, func() error {
		u.Weights = l.weights.Bytes()
		if l.tree != nil {
			s := l.tree.Stats()
			u.Prefix = &s
		}
		return nil
	})
	if err != nil {
		return Usage{}, err
	}
	if l.disk != nil {
		s := l.disk.Stats()
		u.Disk = &s
	}
	b := l.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	u.StateLimit = b.memory.perRequest
	u.Waiting = len(b.waiting)
	u.Running, u.State = b.counters.running, b.counters.stateBytes
	u.Steps, u.Shares = b.counters.steps, b.counters.batchSizeSum
	return u, nil
}

// busy is what the loop tells of the requests that run.
type batcherCounters struct {
	running      int
	stateBytes   int64 // of their state
	steps        int64 // so far
	batchSizeSum int64 // of requests in them
}
