package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
)

// failure is an error with a status of HTTP.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

func failf(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// badRequest is an error of who asks.
func badRequest(format string, args ...any) error {
	return failf(http.StatusBadRequest, format, args...)
}

// statuses are those of errors of the library.
var statuses = []struct {
	is     error
	status int
}{
	{manifest.ErrNotFound, http.StatusNotFound},
	{manifest.ErrInvalidName, http.StatusBadRequest},
	{runtime.ErrBusy, http.StatusServiceUnavailable},
	{errStopping, http.StatusServiceUnavailable},
	{pool.ErrClosed, http.StatusServiceUnavailable},
	{runtime.ErrPrompt, http.StatusBadRequest},
	{runtime.ErrSampling, http.StatusBadRequest},
	{runtime.ErrPictures, http.StatusBadRequest},
	{runtime.ErrNoTokenizer, http.StatusBadRequest},
	{chat.ErrNoTemplate, http.StatusBadRequest},
	{jinja.ErrRender, http.StatusBadRequest},
	{jinja.ErrInput, http.StatusBadRequest},
	{jinja.ErrLimit, http.StatusBadRequest},
	{runner.ErrDied, http.StatusInternalServerError},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
	{runtime.ErrFormat, http.StatusBadRequest},
	{runtime.ErrMemory, http.StatusBadRequest},
	{runtime.ErrDraft, http.StatusBadRequest},
}

// retryAfter is what a client that finds the server busy is told to wait, in seconds.
const retryAfter = "1"

// status is that of an error, and what is said of it.
func status(err error) (int, string) {
	message := oneLine(err.Error())
	var f *failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		return f.status, message
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is longer than %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the request did not come to its end in time"
	}
	for _, s := range statuses {
		if errors.Is(err, s.is) {
			switch s.is {
			case manifest.ErrNotFound:
				message += "; `ingot pull` fetches a model, `ingot ls` lists those that are here"
			case runtime.ErrMemory:
				message += "; `ingot serve --context TOKENS` makes room for more"
			}
			return s.status, message
		}
	}
	return http.StatusInternalServerError, message
}

// fail answers with an error: with a status where the answer has not begun, as the last line of a stream that has.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	cause := context.Cause(r.Context())
	if errors.Is(cause, errStopping) {
		err = cause
	}
	code, message := status(err)
	if code >= http.StatusInternalServerError && cause == nil && !errors.Is(err, runtime.ErrBusy) { // else it is the client's, or said elsewhere
		s.opts.Log("%s %s: %s", r.Method, clip(r.URL.Path), message)
	}
	a, _ := w.(*answer)
	switch {
	case a != nil && a.broken:
	case a != nil && a.stream:
		_ = writeLine(w, errorJSON{message})
	case a != nil && a.begun:
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	default:
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		refuse(w, code, message)
	}
}

type errorJSON struct {
	Error string `json:"error"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	b, err := json.Marshal(errorJSON{message})
	if err == nil {
		_, _ = w.Write(append(b, '\n'))
	}
}

// oneLine makes one line of a message, which may quote what came from outside.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// clip shortens what a message quotes.
func clip(s string) string {
	const limit = 80
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	return oneLine(s)
}
