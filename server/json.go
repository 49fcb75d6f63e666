package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
)

// Media types.
const (
	jsonType   = "application/json; charset=utf-8"
	ndjsonType = "application/x-ndjson"
	sseType    = "text/event-stream"
	textType   = "text/plain"
	anyType    = "*/*"
)

// readJSON decodes a request's body, one JSON value. Unknown fields are ignored.
func readJSON(r *http.Request, to any) error {
	b, err := readWhole(r)
	var large *http.MaxBytesError
	var known *failure
	switch {
	case errors.As(err, &large), errors.As(err, &known), errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil:
		return badRequest("read the request: %v", err)
	case len(bytes.TrimSpace(b)) == 0:
		return badRequest("the request has no body, want JSON")
	}
	if err := json.Unmarshal(b, to); err != nil {
		return badRequest("invalid request: %v", err)
	}
	return nil
}

// writeJSON responds with a value.
func writeJSON(w http.ResponseWriter, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(b) // fails only if the client has disconnected
	return nil
}

// writeLine writes a value to a stream of JSON lines.
func writeLine(w http.ResponseWriter, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	if a, ok := w.(*responseWriter); ok && a.last == nil {
		a.last = func(t apiError) error { return writeLine(w, errorJSON{t.message}) }
		w.Header().Set("Content-Type", ndjsonType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no")
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// encode returns a value as a line of JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
