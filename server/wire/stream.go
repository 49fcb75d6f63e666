package wire

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// Stream is a response that is sent in messages: server-sent events (HTML standard, 9.2) or lines of JSON. It is safe
// for concurrent use. A nil Stream stands for a response that is not streamed: Open and Stop do nothing.
//
// It starts with its first message, with Open, or when the client has waited for an interval, whichever comes first. An
// error before that has an HTTP status; after that it is the last message. Whenever the stream has been silent for an
// interval, it sends a keep-alive, so that neither the client nor a proxy gives up while a model loads or a prompt is
// evaluated. The caller must call Stop before the handler returns.
type Stream struct {
	w      http.ResponseWriter
	events bool              // server-sent events; otherwise lines
	last   func(Error) error // sends an error as the last message
	every  time.Duration     // the interval

	mu      sync.Mutex
	alive   func() error // sends a keep-alive; called with mu locked
	begun   bool         // the headers are sent
	stopped bool         // no keep-alive follows
	wrote   time.Time    // when something was sent last; at first, when the stream was made
	timer   *time.Timer
}

// Send sends a value as one message: as JSON in an event of a type, unless name is empty, or in a line.
type Send func(name string, v any) error

// comment is a comment of a stream of events, which clients skip. Some take a comment and the event after it for one
// block, so it ends with an empty line.
const comment = ": keep-alive\n\n"

// NewEvents returns a stream of events. Its keep-alives are comments, unless KeepAlive sets others. last sends an error
// as the last event.
func NewEvents(w http.ResponseWriter, every time.Duration, last func(Error) error) *Stream {
	s := &Stream{w: w, events: true, last: last, every: every}
	s.alive = func() error { return s.write([]byte(comment)) }
	return s.start()
}

// NewLines returns a stream of lines. alive returns a line without effect, which is the keep-alive. An error is an
// ErrorJSON.
func NewLines(w http.ResponseWriter, every time.Duration, alive func() any) *Stream {
	s := &Stream{w: w, every: every}
	s.last = func(t Error) error { return s.Send("", ErrorJSON{t.Message}) }
	s.alive = func() error { return s.send("", alive()) }
	return s.start()
}

func (s *Stream) start() *Stream {
	s.mu.Lock() // the timer's goroutine reads the timer
	defer s.mu.Unlock()
	s.wrote = time.Now()
	s.timer = time.AfterFunc(s.every, s.tick)
	return s
}

// tick sends a keep-alive if one is due. After a write has failed, which cancels the request, it sends none.
func (s *Stream) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	wait := s.every - time.Since(s.wrote)
	if wait <= 0 {
		if s.alive() != nil {
			return
		}
		wait = s.every
	}
	s.timer.Reset(wait)
}

// KeepAlive sets the function that sends a keep-alive. No other message is sent while it runs, nor while a function
// that Do calls runs: they may share state.
func (s *Stream) KeepAlive(alive func(Send) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = func() error { return alive(s.send) }
}

// Open starts the stream, unless it has started: with a comment, or with the headers alone, since a line would look
// like the model's first one.
func (s *Stream) Open() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.stopped {
		return
	}
	var first []byte
	if s.events {
		first = []byte(comment)
	}
	_ = s.write(first) // fails only if the client has disconnected
}

// Stop ends the keep-alives: none is being sent when it returns, and none follows. Messages may.
func (s *Stream) Stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
}

// Do calls f, which sends messages. No other message is sent while it runs.
func (s *Stream) Do(f func(Send) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.send)
}

// Send sends one message.
func (s *Stream) Send(name string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(name, v)
}

// Last sends the last message of a request that has not failed. No keep-alive follows.
func (s *Stream) Last(name string, v any) error {
	s.Stop()
	return s.Send(name, v)
}

// Done sends the event that ends a stream of OpenAI's API. No keep-alive follows.
func (s *Stream) Done() error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write([]byte("data: [DONE]\n\n"))
}

// send sends a message. The caller has locked mu.
func (s *Stream) send(name string, v any) error {
	line, err := Encode(v)
	if err != nil {
		return err
	}
	if !s.events {
		return s.write(line)
	}
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(line)
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

// write sends bytes, after the headers. The caller has locked mu.
func (s *Stream) write(b []byte) error {
	if !s.begun {
		s.begun = true
		if a, ok := s.w.(*Response); ok {
			a.last = s.last
		}
		h := s.w.Header()
		h.Set("Content-Type", LinesType)
		if s.events {
			h.Set("Content-Type", EventsType)
		}
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // a proxy is to pass each message on at once
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	err := http.NewResponseController(s.w).Flush()
	s.wrote = time.Now()
	return err
}
