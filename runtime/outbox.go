package runtime

import (
	"context"
	"sync"
)

// outbox carries a request's events from the batcher to whoever reads the stream. The batcher never waits for a reader: a request has at
// most as many events as tokens.
type outbox struct {
	mu     sync.Mutex
	events []Event
	ended  bool
	err    error         // of the stream, after its events
	news   chan struct{} // one element: something was put
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

func (o *outbox) put(e Event) {
	o.mu.Lock()
	o.events = append(o.events, e)
	o.ended = o.ended || e.Done != ""
	o.mu.Unlock()
	o.ring()
}

// end is the end of a stream without a last event.
func (o *outbox) end(err error) {
	o.mu.Lock()
	if !o.ended {
		o.ended, o.err = true, err
	}
	o.mu.Unlock()
	o.ring()
}

func (o *outbox) ring() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// take waits for events and gives all that are there. After the last ones more is false, and err says how the stream ended.
func (o *outbox) take(ctx context.Context) (events []Event, more bool, err error) {
	for {
		o.mu.Lock()
		events, o.events = o.events, nil
		ended, failed := o.ended, o.err
		o.mu.Unlock()
		if len(events) > 0 || ended {
			return events, !ended, failed
		}
		select {
		case <-o.news:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}
