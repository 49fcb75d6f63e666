package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
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

// dialects are the error formats of the APIs, keyed by path prefix; first match wins.
var dialects = []struct {
	path string
	body func(apiError) any
	busy int // the status that tells a client to retry later
}{
	{"/v1/messages", anthropicError, statusOverloaded},
	{"/v1/", openAIError, http.StatusServiceUnavailable},
	{"/", func(t apiError) any { return errorJSON{t.message} }, http.StatusServiceUnavailable},
}

// errorBody returns the status and body of an error in the format of a path's API.
func errorBody(path string, t apiError) (status int, body any) {
	for _, d := range dialects {
		if strings.HasPrefix(path, d.path) {
			if t.status == http.StatusServiceUnavailable {
				t.status = d.busy
			}
			return t.status, d.body(t)
		}
	}
	return t.status, errorJSON{t.message}
}

// statuses maps errors of other packages to an HTTP status.
var statuses = []struct {
	is     error
	status int
}{
	{manifest.ErrNotFound, http.StatusNotFound},
	{manifest.ErrInvalidName, http.StatusBadRequest},
	{manifest.ErrNoSpace, http.StatusInsufficientStorage},
	{syscall.ENOSPC, http.StatusInsufficientStorage},
	{manifest.ErrBusy, http.StatusServiceUnavailable},
	{convert.ErrSource, http.StatusBadRequest},
	{convert.ErrRecipe, http.StatusBadRequest},
	{runtime.ErrBusy, http.StatusServiceUnavailable},
	{errStopping, http.StatusServiceUnavailable},
	{pool.ErrClosed, http.StatusServiceUnavailable},
	{runtime.ErrPrompt, http.StatusBadRequest},
	{runtime.ErrSampling, http.StatusBadRequest},
	{runtime.ErrPictures, http.StatusBadRequest},
	{runtime.ErrNoTokenizer, http.StatusBadRequest},
	{chat.ErrNoTemplate, http.StatusBadRequest},
	{chat.ErrTools, http.StatusBadRequest},
	{jinja.ErrRender, http.StatusBadRequest},
	{jinja.ErrInput, http.StatusBadRequest},
	{jinja.ErrLimit, http.StatusBadRequest},
	{runner.ErrDied, http.StatusInternalServerError},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
	{runtime.ErrFormat, http.StatusBadRequest},
	{runtime.ErrMemory, http.StatusBadRequest},
	{runtime.ErrDraft, http.StatusBadRequest},
	{runtime.ErrEmbedding, http.StatusBadRequest},
}

// retryAfter is the Retry-After header of a busy server, in seconds.
const retryAfter = "1"

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

// fail sends an error: as a response with a status, or as the last message if a stream has started.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	cause := context.Cause(r.Context())
	if errors.Is(cause, errStopping) {
		err = cause
	}
	t := toAPIError(err)
	// Client errors are not logged, and some others are logged elsewhere.
	if t.status >= http.StatusInternalServerError && cause == nil && !errors.Is(err, runtime.ErrBusy) {
		s.opts.Log("%s %s: %s", r.Method, clip(r.URL.Path), t.message)
	}
	a, _ := w.(*responseWriter)
	switch {
	case a != nil && a.broken:
	case a != nil && a.last != nil:
		_ = a.last(t) // fails only if the client has disconnected
	case a != nil && a.begun:
		panic(http.ErrAbortHandler) // aborts the connection: a partial response must not look complete
	default:
		if t.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		refuse(w, r, t)
	}
}

type errorJSON struct {
	Error string `json:"error"`
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, r *http.Request, t apiError) {
	status, body := errorBody(r.URL.Path, t)
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	if b, err := encode(body); err == nil {
		_, _ = w.Write(b)
	}
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
