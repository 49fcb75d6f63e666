package ollama

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ingotml/ingot/server/wire"
)

// progressJSON is a progress message, in Ollama's form. Sizes are in bytes.
type progressJSON struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"` // the blob in question
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// reporter takes progress messages.
type reporter func(progressJSON)

// statusSuccess is the last status.
const statusSuccess = "success"

// progressInterval is the minimum time between two writes. A write has only the latest message about each subject.
const progressInterval = 100 * time.Millisecond

// streamProgress runs a long operation and streams its progress. If the client wants no stream, the response is only
// the last message. A slow client does not slow the operation down. If the client disconnects, the operation is
// cancelled.
func streamProgress(w http.ResponseWriter, r *http.Request, stream *bool,
	do func(ctx context.Context, report reporter) error) error {
	if !streams(stream) {
		if err := do(r.Context(), func(progressJSON) {}); err != nil {
			return err
		}
		return wire.WriteJSON(w, progressJSON{Status: statusSuccess})
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	q := &progressQueue{
		at: map[string]int{}, ready: make(chan struct{}, 1), closed: make(chan struct{}), written: make(chan struct{}),
	}
	go q.write(w, cancel)
	if err := q.during(func() error { return do(ctx, q.add) }); err != nil {
		return err
	}
	return wire.WriteLine(w, progressJSON{Status: statusSuccess})
}

// progressQueue holds progress messages until a goroutine writes them: the latest one about each subject.
type progressQueue struct {
	mu    sync.Mutex
	lines []progressJSON
	at    map[string]int // index in lines, by subject

	ready   chan struct{} // buffered, one element: lines may be non-empty
	closed  chan struct{} // closed after the last add
	written chan struct{} // closed when all lines are written
	err     error         // of writing; valid after written is closed
}

// add queues a message. It replaces a queued one about the same subject.
func (q *progressQueue) add(p progressJSON) {
	subject := p.Digest
	if subject == "" {
		subject = p.Status
	}
	q.mu.Lock()
	if i, ok := q.at[subject]; ok {
		q.lines[i] = p
	} else {
		q.at[subject] = len(q.lines)
		q.lines = append(q.lines, p)
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// during calls do. When it returns, even by a panic, all messages are written and the caller may write the response
// again.
func (q *progressQueue) during(do func() error) error {
	defer func() {
		close(q.closed)
		<-q.written
	}()
	return do()
}

// write writes messages until the queue is closed. It calls cancel if a write fails.
func (q *progressQueue) write(w http.ResponseWriter, cancel func()) {
	defer close(q.written)
	for closed := false; !closed; {
		select {
		case <-q.ready:
		case <-q.closed:
			closed = true
		}
		if q.err = q.flush(w); q.err != nil {
			cancel()
			return
		}
		select {
		case <-time.After(progressInterval):
		case <-q.closed:
		}
	}
}

func (q *progressQueue) flush(w http.ResponseWriter) error {
	q.mu.Lock()
	lines := q.lines
	q.lines = nil
	clear(q.at)
	q.mu.Unlock()
	for _, p := range lines {
		if err := wire.WriteLine(w, p); err != nil {
			return err
		}
	}
	return nil
}
