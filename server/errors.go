package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
)

// failure is an error with an HTTP status.
type failure struct {
	status  int
	message string
	param   string // the invalid parameter, or ""
}

func (f *failure) Error() string { return f.message }

func failf(status int, format string, args ...any) error {
	return &failure{status: status, message: fmt.Sprintf(format, args...)}
}

// badRequest returns a client error.
func badRequest(format string, args ...any) error {
	return failf(http.StatusBadRequest, format, args...)
}

// badParam returns a client error about a parameter of the request.
func badParam(name, format string, args ...any) error {
	return &failure{status: http.StatusBadRequest, message: name + ": " + fmt.Sprintf(format, args...), param: name}
}

// apiError is an error as reported to the client.
type apiError struct {
	status  int
	message string
	param   string // the invalid parameter, or ""
	err     error
}

// toAPIError returns the status and message of an error.
func toAPIError(err error) apiError {
	t := apiError{status: http.StatusInternalServerError, message: oneLine(err.Error()), err: err}
	var f *failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		t.status, t.param = f.status, f.param
		return t
	case errors.As(err, &large):
		t.status = http.StatusRequestEntityTooLarge
		t.message = fmt.Sprintf("the request exceeds %d bytes", large.Limit)
		return t
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.status, t.message = http.StatusRequestTimeout, "the request body did not arrive in time"
		return t
	}
	for _, s := range statuses {
		if errors.Is(err, s.is) {
			switch s.is {
			case manifest.ErrNotFound:
				t.message += "; `ingot pull` downloads a model, `ingot ls` lists local ones"
			case runtime.ErrMemory:
				t.message += "; `ingot serve --context TOKENS` allows longer prompts"
			}
			t.status = s.status
			return t
		}
	}
	return t
}

// oneLine replaces control characters by spaces, since a message may quote external text.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// clip shortens text that a message quotes.
func clip(s string) string {
	const limit = 80
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	return oneLine(s)
}
