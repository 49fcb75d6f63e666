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

// progressStream says how to stream progress.
type progressStream struct {
	wanted *bool
	first  string        // the status until there is a report
	every  time.Duration // sends a keep-alive after this time without a message
}

// streamProgress runs a long operation and streams its progress. If the client wants no stream, the response is only
// the last message. A slow client does not slow the operation down. If the client disconnects, the operation is
// cancelled. While there is nothing to report, the last message is sent again.
func streamProgress(w http.ResponseWriter, r *http.Request, how progressStream,
	do func(ctx context.Context, report reporter) error) error {
	q := &progressQueue{
		at: map[string]int{}, ready: make(chan struct{}, 1), closed: make(chan struct{}), written: make(chan struct{}),
		last: progressJSON{Status: how.first},
	}
	lines := lines(w, how.wanted, how.every, q.again)
	defer lines.Stop()
	if lines == nil {
		if err := do(r.Context(), func(progressJSON) {}); err != nil {
			return err
		}
		return wire.WriteJSON(w, progressJSON{Status: statusSuccess})
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go q.write(lines, cancel)
	if err := q.during(func() error { return do(ctx, q.add) }); err != nil {
		return err
	}
	return lines.Last("", progressJSON{Status: statusSuccess})
}

// progressQueue holds progress messages until a goroutine writes them: the latest one about each subject.
type progressQueue struct {
	mu    sync.Mutex
	lines []progressJSON
	at    map[string]int // index in lines, by subject
	last  progressJSON   // written last

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
func (q *progressQueue) write(to *wire.Stream, cancel func()) {
	defer close(q.written)
	for closed := false; !closed; {
		select {
		case <-q.ready:
		case <-q.closed:
			closed = true
		}
		if q.err = q.flush(to); q.err != nil {
			cancel()
			return
		}
		select {
		case <-time.After(progressInterval):
		case <-q.closed:
		}
	}
}

// again returns the message that was written last.
func (q *progressQueue) again() any {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

func (q *progressQueue) flush(to *wire.Stream) error {
	q.mu.Lock()
	lines := q.lines
	q.lines = nil
	clear(q.at)
	if len(lines) > 0 {
		q.last = lines[len(lines)-1]
	}
	q.mu.Unlock()
	for _, p := range lines {
		if err := to.Send("", p); err != nil {
			return err
		}
	}
	return nil
}
