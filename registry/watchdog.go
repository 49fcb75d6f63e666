package registry

import (
	"cmp"
	"context"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sendfile"
	"github.com/ingotml/ingot/registry/waiting"
)

// looksPerStall is how often a watchdog looks during a stall.
const looksPerStall = 6

// watchdog cancels a request of a push over which too little moves. What moves is what the other side has, as far as
// the kernel says: on a slow connection, the kernel may take nothing for a long time because its buffer is full.
type watchdog struct {
	*waiting.Watch
	stall  time.Duration // as the options say
	every  time.Duration // between looks
	length int64
	taken  atomic.Int64 // bytes of the body that the kernel has taken
	conn   atomic.Pointer[net.Conn]
	looks  *time.Timer // nil: there is no body

	arrived int64 // at the last look
}

// startWatchdog returns the context of a request that is canceled if too little of a body of this length moves for
// stall, or if no response arrives within [waiting.Factor] times that after the last byte; both grow. The caller must
// call stop.
func (p *pusher) startWatchdog(ctx context.Context, method string, length int64) (context.Context, *watchdog) {
	watch := p.timeouts.Watch(ctx, p.opts.Stall, waiting.Factor(method))
	w := &watchdog{Watch: watch, stall: p.opts.Stall, length: length}
	if length == 0 {
		return w.Context(), w
	}
	w.Send(w.stall)
	w.every = cmp.Or(p.r.Setting().Timeout, w.stall) / looksPerStall
	w.looks = time.AfterFunc(time.Hour, w.look) // look needs the timer
	w.looks.Reset(w.every)
	return httptrace.WithClientTrace(w.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { w.conn.Store(&got.Conn) },
	}), w
}

// look counts what has arrived since it looked last.
func (w *watchdog) look() {
	if w.Context().Err() != nil {
		return
	}
	arrived := w.taken.Load()
	if c := w.conn.Load(); c != nil {
		arrived -= int64(sendfile.Unsent(*c))
	}
	if arrived > w.arrived {
		w.Moved(arrived - w.arrived)
		w.arrived = arrived
	}
	w.looks.Reset(w.every)
}

// moved counts bytes of the body that the kernel has taken.
func (w *watchdog) moved(n int64) {
	if w.taken.Add(n) == w.length {
		w.Sent(w.stall, waiting.Write)
	}
}

func (w *watchdog) stop() {
	if w.looks != nil {
		w.looks.Stop()
	}
	w.Stop()
}

// cause returns the error of the request, an [remote.ErrInterrupted] if the watchdog canceled it.
func (w *watchdog) cause(err error) error { return remote.Interrupted(w.Watch, err) }
