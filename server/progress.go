package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// progressJSON is a line about what takes a while, as Ollama's clients read it. Sizes are in bytes.
type progressJSON struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"` // of the blob that the line is about
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// statusSuccess is the last line.
const statusSuccess = "success"

// progressPause is how long a client hears nothing after it was told something, so that a line stands for all that happened meanwhile.
const progressPause = 100 * time.Millisecond

// follow does what takes a while, and streams what it tells of itself; the answer to a client that wants no stream is the last line.
// A client that reads slowly holds nothing up, and one that leaves ends it.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, stream *bool, do func(ctx context.Context, tell func(progressJSON)) error) error {
	if !streams(stream) {
		if err := do(r.Context(), func(progressJSON) {}); err != nil {
			return err
		}
		return writeJSON(w, progressJSON{Status: statusSuccess})
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	n := &news{at: map[string]int{}, some: make(chan struct{}, 1), over: make(chan struct{}), written: make(chan struct{})}
	go n.write(w, leave)
	if err := n.cover(func() error { return do(ctx, n.tell) }); err != nil {
		return err
	}
	return writeLine(w, progressJSON{Status: statusSuccess})
}

// news are lines that a client has not been told yet, the latest about each thing.
type news struct {
	mu    sync.Mutex
	lines []progressJSON
	at    map[string]int // by what a line is about

	some    chan struct{} // holds a token when there may be lines
	over    chan struct{} // closed when no more come
	written chan struct{} // closed when all are written
	err     error         // of writing
}

// tell takes a line, in place of one about the same that is still to be told.
func (n *news) tell(p progressJSON) {
	about := p.Digest
	if about == "" {
		about = p.Status
	}
	n.mu.Lock()
	if i, ok := n.at[about]; ok {
		n.lines[i] = p
	} else {
		n.at[about] = len(n.lines)
		n.lines = append(n.lines, p)
	}
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// cover calls do; afterwards all lines are written, and the answer is the caller's again, even after a panic.
func (n *news) cover(do func() error) error {
	defer func() {
		close(n.over)
		<-n.written
	}()
	return do()
}

// write writes lines until no more come, and calls leave when the client does not take them.
func (n *news) write(w http.ResponseWriter, leave func()) {
	defer close(n.written)
	for over := false; !over; {
		select {
		case <-n.some:
		case <-n.over:
			over = true
		}
		if n.err = n.flush(w); n.err != nil {
			leave()
			return
		}
		select {
		case <-time.After(progressPause):
		case <-n.over:
		}
	}
}

func (n *news) flush(w http.ResponseWriter) error {
	n.mu.Lock()
	lines := n.lines
	n.lines = nil
	clear(n.at)
	n.mu.Unlock()
	for _, p := range lines {
		if err := writeLine(w, p); err != nil {
			return err
		}
	}
	return nil
}
