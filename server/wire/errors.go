package wire

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
)

// ErrStopping reports that the server stops.
var ErrStopping = fault.Register(errors.New("the server is stopping"), fault.Kind{
	Name: "server/wire.ErrStopping", Means: "the server stops",
	Rank: fault.Stopping + 1, Status: fault.Unavailable,
})

// failure is an error with an HTTP status.
type failure struct {
	status  int
	message string
	param   string         // the invalid parameter, or ""
	field   *jsonfit.Error // about it; nil: the message is not about one
	cause   error          // that the message wraps, or nil
}

func (f *failure) Error() string { return f.message }

func (f *failure) Unwrap() error { return f.cause }

// Errorf returns an error with an HTTP status.
func Errorf(status int, format string, args ...any) error {
	return &failure{status: status, message: fmt.Sprintf(format, args...)}
}

// BadRequest returns a client error.
func BadRequest(format string, args ...any) error {
	return Errorf(http.StatusBadRequest, format, args...)
}

// BadParam returns a client error about a parameter of the request. As in [fmt.Errorf], %w wraps an error.
func BadParam(name, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &failure{
		status: http.StatusBadRequest, message: name + ": " + err.Error(), param: name, cause: errors.Unwrap(err),
	}
}

// BadJSON returns the client error of jsonfit's error, or nil. Its path has the form of the API: see [Dialects].
func BadJSON(err error) error {
	var e *jsonfit.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return BadRequest("%v", err)
	case len(e.Path) == 0 && !e.Named:
		return BadRequest("the request: %v", e)
	}
	return &failure{status: http.StatusBadRequest, message: e.Error(), param: e.Path.String(), field: e}
}

// Error is an error as reported to the client.
type Error struct {
	Status  int
	Message string
	Param   string // the invalid parameter, or ""
	Err     error

	field *jsonfit.Error // that the message is about, or nil
}

// ErrorOf returns the status and message of an error. The message has a bounded length, whatever it quotes.
func ErrorOf(err error) Error {
	t := Error{Status: http.StatusInternalServerError, Message: Line(err.Error()), Err: err}
	var f *failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		t.Status, t.Param, t.field = f.status, Clip(f.param), f.field
		return t
	case errors.As(err, &large):
		t.Status = http.StatusRequestEntityTooLarge
		t.Message = fmt.Sprintf("the request exceeds %d bytes", large.Limit)
		return t
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.Status, t.Message = http.StatusRequestTimeout, "the request body did not arrive in time"
		return t
	}
	if status, advice := fault.Status(err); status != 0 {
		t.Status = status
		t.Message += advice
	}
	return t
}

// Line makes a message a line of at most [limits.Message] bytes.
func Line(s string) string { return clip.Middle(clip.Controls(s), limits.Message) }

// Clip shortens text that a message quotes.
func Clip(s string) string { return clip.Controls(clip.Text(s, 80)) }
