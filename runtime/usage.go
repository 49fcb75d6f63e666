package runtime

import (
	"context"

	"github.com/ingotml/ingot/cache/prefix"
)

// Usage is a model's current use of memory, and its activity.
type Usage struct {
	Weights    int64             `json:"weights"`     // bytes, including those in mapped files
	State      int64             `json:"state"`       // bytes of running requests' state
	StateLimit int64             `json:"state_limit"` // bound of State; 0: none
	Running    int               `json:"running"`     // requests in the batch
	Waiting    int               `json:"waiting"`     // requests in the queue
	Steps      int64             `json:"steps"`       // since the model was loaded
	Shares     int64             `json:"shares"`      // sum of the batch sizes of these steps; Shares/Steps is the mean
	Prefix     *prefix.Stats     `json:"prefix,omitempty"`
	Disk       *prefix.DiskStats `json:"disk,omitempty"`
}

// Reporter is an [Engine] that reports its usage.
type Reporter interface {
	Engine
	Usage(ctx context.Context) (Usage, error)
}

// Usage implements Reporter. It waits for the current step.
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

// batcherCounters is what the loop publishes about its requests.
type batcherCounters struct {
	running      int
	stateBytes   int64 // of the running requests
	steps        int64 // so far
	batchSizeSum int64 // over these steps
}
