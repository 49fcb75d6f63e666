package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"

	"github.com/ingotml/ingot/limits/jsonfit"
)

// Media types.
const (
	JSONType   = "application/json; charset=utf-8"
	LinesType  = "application/x-ndjson"
	EventsType = "text/event-stream"
	TextType   = "text/plain"
	AnyType    = "*/*"
)

// ReadJSON decodes a request's body, one JSON value. Unknown fields are ignored.
func ReadJSON(r *http.Request, to any) error {
	b, err := readWhole(r)
	var large *http.MaxBytesError
	var known *failure
	switch {
	case errors.As(err, &large), errors.As(err, &known), errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil:
		return BadRequest("read the request: %v", err)
	case len(bytes.TrimSpace(b)) == 0:
		return BadRequest("the request has no body, want JSON")
	}
	return BadJSON(jsonfit.Unmarshal(b, to))
}

// WriteJSON responds with a value.
func WriteJSON(w http.ResponseWriter, v any) error {
	b, err := Encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", JSONType)
	_, _ = w.Write(b) // fails only if the client has disconnected
	return nil
}

// Encode returns a value as a line of JSON.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
