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

// failure is an error with a status of HTTP.
type failure struct {
	status  int
	message string
	param   string // of the request, which is wrong; may be empty
}

func (f *failure) Error() string { return f.message }

func failf(status int, format string, args ...any) error {
	return &failure{status: status, message: fmt.Sprintf(format, args...)}
}

// badRequest is an error of who asks.
func badRequest(format string, args ...any) error {
	return failf(http.StatusBadRequest, format, args...)
}

// badParam is one that a parameter of the request causes.
func badParam(name, format string, args ...any) error {
	return &failure{status: http.StatusBadRequest, message: name + ": " + fmt.Sprintf(format, args...), param: name}
}

// told is what the client hears of an error.
type told struct {
	status  int
	message string
	param   string // that is wrong; may be empty
	err     error
}

// dialects are how APIs write errors: what the status and the body of such an answer are, by how its path begins. The first that fits
// counts.
var dialects = []struct {
	path string
	body func(told) any
	busy int // the status where a later try may go through
}{
	{"/v1/messages", anthropicError, statusOverloaded},
	{"/v1/", openAIError, http.StatusServiceUnavailable},
	{"/", func(t told) any { return errorJSON{t.message} }, http.StatusServiceUnavailable},
}

// errorAnswer is an error as clients of a path expect it.
func errorAnswer(path string, t told) (status int, body any) {
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

// statuses are those of errors of the library.
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

// retryAfter is what a client that finds the server busy is told to wait, in seconds.
const retryAfter = "1"

// tell gives the status of an error, and what is said of it.
func tell(err error) told {
	t := told{status: http.StatusInternalServerError, message: oneLine(err.Error()), err: err}
	var f *failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		t.status, t.param = f.status, f.param
		return t
	case errors.As(err, &large):
		t.status, t.message = http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is longer than %d bytes", large.Limit)
		return t
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.status, t.message = http.StatusRequestTimeout, "the request did not come to its end in time"
		return t
	}
	for _, s := range statuses {
		if errors.Is(err, s.is) {
			switch s.is {
			case manifest.ErrNotFound:
				t.message += "; `ingot pull` fetches a model, `ingot ls` lists those that are here"
			case runtime.ErrMemory:
				t.message += "; `ingot serve --context TOKENS` makes room for more"
			}
			t.status = s.status
			return t
		}
	}
	return t
}

// fail answers with an error: with a status where the answer has not begun, as the last message of a stream that has.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	cause := context.Cause(r.Context())
	if errors.Is(cause, errStopping) {
		err = cause
	}
	t := tell(err)
	if t.status >= http.StatusInternalServerError && cause == nil && !errors.Is(err, runtime.ErrBusy) { // else it is the client's, or said elsewhere
		s.opts.Log("%s %s: %s", r.Method, clip(r.URL.Path), t.message)
	}
	a, _ := w.(*answer)
	switch {
	case a != nil && a.broken:
	case a != nil && a.last != nil:
		_ = a.last(t) // an error means that the client left
	case a != nil && a.begun:
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
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

// refuse answers with an error.
func refuse(w http.ResponseWriter, r *http.Request, t told) {
	status, body := errorAnswer(r.URL.Path, t)
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	if b, err := encode(body); err == nil {
		_, _ = w.Write(b)
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
