package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/registry/remote"
)

// responseStallFactor multiplies the stall timeout while waiting for a response: the registry may have to hash a whole
// blob and move it to its final place.
const responseStallFactor = 10

// looksPerStall is how often a watchdog looks during a stall.
const looksPerStall = 6

// watchdog cancels a request that makes no progress: neither does the kernel take bytes of it, nor the other side.
type watchdog struct {
	stall  time.Duration
	left   atomic.Int64 // bytes of the body that the kernel has not taken yet
	conn   atomic.Pointer[net.Conn]
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc

	// What it saw last, and how often since.
	seenLeft   int64
	seenUnsent int
	idle       int
}

var errStalled = errors.New("no progress")

// startWatchdog returns a context that is canceled if no byte of a body of this length moves for stall, or if no
// response arrives within stall*responseStallFactor after the last byte. The caller must call stop.
func startWatchdog(ctx context.Context, length int64, stall time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{stall: stall, ctx: ctx, cancel: cancel, seenLeft: length}
	w.left.Store(length)
	w.timer = time.AfterFunc(time.Hour, w.look) // look needs the timer
	w.timer.Reset(stall / looksPerStall)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { w.conn.Store(&got.Conn) },
	}), w
}

// look cancels the request if it saw the same often enough.
func (w *watchdog) look() {
	if w.ctx.Err() != nil {
		return
	}
	left, unsent := w.left.Load(), 0
	if c := w.conn.Load(); c != nil {
		unsent = remote.Unsent(*c)
	}
	most := looksPerStall
	if left == 0 {
		most *= responseStallFactor
	}
	if w.idle++; left != w.seenLeft || unsent != w.seenUnsent {
		w.seenLeft, w.seenUnsent, w.idle = left, unsent, 0
	}
	if w.idle >= most {
		w.cancel(errStalled)
		return
	}
	w.timer.Reset(w.stall / looksPerStall)
}

func (w *watchdog) moved(n int64) { w.left.Add(-n) }

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
