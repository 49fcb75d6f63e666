package registry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/registry/remote"
)

// responseStallFactor multiplies the stall timeout while waiting for a response: the registry may have to hash a whole
// blob and move it to its final place.
const responseStallFactor = 10

// watchdog cancels a request that makes no progress.
type watchdog struct {
	stall  time.Duration
	left   atomic.Int64 // bytes of the body that are not sent yet
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

var errStalled = errors.New("no progress")

// startWatchdog returns a context that is canceled if no byte of a body of this length is sent for stall, or if no
// response arrives within stall*responseStallFactor after the last byte. The caller must call stop.
func startWatchdog(ctx context.Context, length int64, stall time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{stall: stall, cancel: cancel}
	w.left.Store(length)
	if length == 0 {
		stall *= responseStallFactor
	}
	w.timer = time.AfterFunc(stall, func() { cancel(errStalled) })
	return ctx, w
}

func (w *watchdog) moved(n int64) {
	if w.left.Add(-n) > 0 {
		w.timer.Reset(w.stall)
	} else {
		w.timer.Reset(w.stall * responseStallFactor)
	}
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause turns the error of a request that the watchdog canceled into an [ErrInterrupted], which is temporary.
func (w *watchdog) cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: the registry stalled (timeouts: %v for a byte, %v for a response)",
			remote.ErrInterrupted, w.stall, w.stall*responseStallFactor)
	}
	return err
}
