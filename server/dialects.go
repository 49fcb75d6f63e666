package server

import (
	"net/http"
	"strings"
)

// errorJSON is the body of an error of paths without a dialect, and the last message of a stream of JSON lines.
type errorJSON struct {
	Error string `json:"error"`
}

// dialect is the form of an API's errors.
type dialect struct {
	prefix string // of the API's paths
	body   func(apiError) any
	busy   int // the status that tells a client to retry later
}

// dialects are the forms of errors by path. The longest prefix wins. Other paths have errors of the type errorJSON.
type dialects []dialect

// failure returns the status and body of an error in the form of a path's API.
func (d dialects) failure(path string, t apiError) (status int, body any) {
	best := dialect{"", func(t apiError) any { return errorJSON{t.message} }, http.StatusServiceUnavailable}
	for _, x := range d {
		if strings.HasPrefix(path, x.prefix) && len(x.prefix) > len(best.prefix) {
			best = x
		}
	}
	if t.status == http.StatusServiceUnavailable {
		t.status = best.busy
	}
	return t.status, best.body(t)
}

// retryAfter is the Retry-After header of a busy server, in seconds.
const retryAfter = "1"

// fail sends an error: as a response with a status, or as the last message if a stream has started.
func (d dialects) fail(w http.ResponseWriter, r *http.Request, t apiError) {
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
		d.refuse(w, r, t)
	}
}

// refuse responds with an error.
func (d dialects) refuse(w http.ResponseWriter, r *http.Request, t apiError) {
	status, body := d.failure(r.URL.Path, t)
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	if b, err := encode(body); err == nil {
		_, _ = w.Write(b)
	}
}
