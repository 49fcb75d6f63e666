package server

import (
	"bytes"
	"net/http"
)

// events is a stream of server-sent events (HTML standard, 9.2). It starts with the first event, so an error before
// that has an HTTP status.
type events struct {
	w    http.ResponseWriter
	last func(apiError) error // sends an error as the last event
}

// newEvents returns a stream. last sends an error as its last event.
func newEvents(w http.ResponseWriter, last func(apiError) error) events { return events{w, last} }

// send sends a value as JSON in an event. The event has a type if name is not empty.
func (e *events) send(name string, v any) error {
	data, err := encode(v) // a single line
	if err != nil {
		return err
	}
	return e.write(name, data)
}

// done sends the event that ends a stream of OpenAI's API.
func (e *events) done() error { return e.write("", []byte("[DONE]\n")) }

func (e *events) write(name string, line []byte) error {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(line)
	b.WriteByte('\n')
	if a, ok := e.w.(*responseWriter); ok && a.last == nil {
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
