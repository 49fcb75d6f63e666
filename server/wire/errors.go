package wire

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/ingotml/ingot/limits/clip"
	"github.com/ingotml/ingot/limits/fault"
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
	param   string // the invalid parameter, or ""
}

func (f *failure) Error() string { return f.message }

// Errorf returns an error with an HTTP status.
func Errorf(status int, format string, args ...any) error {
	return &failure{status: status, message: fmt.Sprintf(format, args...)}
}

// BadRequest returns a client error.
func BadRequest(format string, args ...any) error {
	return Errorf(http.StatusBadRequest, format, args...)
}

// BadParam returns a client error about a parameter of the request.
func BadParam(name, format string, args ...any) error {
	return &failure{status: http.StatusBadRequest, message: name + ": " + fmt.Sprintf(format, args...), param: name}
}

// Error is an error as reported to the client.
type Error struct {
	Status  int
	Message string
	Param   string // the invalid parameter, or ""
	Err     error
}

// ErrorOf returns the status and message of an error.
func ErrorOf(err error) Error {
	t := Error{Status: http.StatusInternalServerError, Message: clip.Controls(err.Error()), Err: err}
	var f *failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		t.Status, t.Param = f.status, f.param
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

// Clip shortens text that a message quotes.
func Clip(s string) string { return clip.Controls(clip.Text(s, 80)) }
