package wire

import (
	"bytes"
	"net/http"
)

// Events is a stream of server-sent events (HTML standard, 9.2). It starts with the first event, so an error before
// that has an HTTP status.
type Events struct {
	w    http.ResponseWriter
	last func(Error) error // sends an error as the last event
}

// NewEvents returns a stream. last sends an error as its last event.
func NewEvents(w http.ResponseWriter, last func(Error) error) Events { return Events{w, last} }

// Send sends a value as JSON in an event. The event has a type if name is not empty.
func (e *Events) Send(name string, v any) error {
	data, err := Encode(v) // a single line
	if err != nil {
		return err
	}
	return e.write(name, data)
}

// Done sends the event that ends a stream of OpenAI's API.
func (e *Events) Done() error { return e.write("", []byte("[DONE]\n")) }

func (e *Events) write(name string, line []byte) error {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(line)
	b.WriteByte('\n')
	if a, ok := e.w.(*Response); ok && a.last == nil {
		a.last = e.last
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
	}
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}
