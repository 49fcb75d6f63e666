package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
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
		if status, _ := fault.Status(err); status != 0 { // there is no memory for it
			return err
		}
		return BadRequest("read the request: %v", err)
	case len(bytes.TrimSpace(b)) == 0:
		return BadRequest("the request has no body, want JSON")
	}
	return BadJSON(jsonfit.Unmarshal(b, to))
}

// WriteJSON responds with a value. Its memory is counted before it is encoded, until the client has it.
func WriteJSON(w http.ResponseWriter, v any) error {
	if err := Take(contextOf(w), perByte*(sizeJSON(reflect.ValueOf(v))-freeText)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", JSONType)
	to := &encoded{w: w}
	if err := encode(to, v); err != nil && !to.begun {
		return err
	}
	return nil // a write fails only if the client has disconnected
}

// encoded is what a value was encoded to, which is written at once.
type encoded struct {
	w     io.Writer
	begun bool
}

func (e *encoded) Write(p []byte) (int, error) {
	e.begun = true
	return e.w.Write(p)
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Encode returns a value as a line of JSON.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, v)
	return b.Bytes(), err
}
