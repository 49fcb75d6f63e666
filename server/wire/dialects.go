package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// ErrorJSON is the body of an error of paths without a dialect, and the last message of a stream of JSON lines.
type ErrorJSON struct {
	Error string `json:"error"`
}

// dialect is the form of an API's errors.
type dialect struct {
	Prefix string // of the API's paths
	Header string // that requests of the API have, where others share the path; "": none
	Body   func(Error) any
	Busy   int // the status that tells a client to retry later
	// Dotted says that paths of fields have the form messages.2.content, not messages[2].content.
	Dotted bool
}

// Dialects are the forms of errors by path and header. The longest prefix wins, and of two the one with a header. Other
// paths have errors of the type errorJSON.
type Dialects []dialect

// Failure returns the status and body of an error in the form of the API that a request's path and header belong to.
func (d Dialects) Failure(path string, header http.Header, t Error) (status int, body any) {
	best := dialect{Body: func(t Error) any { return ErrorJSON{t.Message} }, Busy: http.StatusServiceUnavailable}
	for _, x := range d {
		if !strings.HasPrefix(path, x.Prefix) || x.Header != "" && header.Get(x.Header) == "" {
			continue
		}
		if n := len(x.Prefix) - len(best.Prefix); n > 0 || n == 0 && x.Header != "" {
			best = x
		}
	}
	if t.Status == http.StatusServiceUnavailable {
		t.Status = best.Busy
	}
	if best.Dotted && t.field != nil {
		t.Param = Clip(t.field.Path.Dotted())
		t.Message = Line(t.field.With(t.Param))
	}
	return t.Status, best.Body(t)
}

// retryAfter returns the Retry-After header of a busy server: the seconds until it is expected to have less work, at
// least 1 and at most an hour.
func retryAfter(err error) string {
	after, _ := runtime.RetryAfter(err)
	return strconv.Itoa(int(min(max(math.Ceil(after.Seconds()), 1), 3600)))
}

// Fail sends an error: as a response with a status, or as the last message if a stream has started.
func (d Dialects) Fail(w http.ResponseWriter, r *http.Request, t Error) {
	a, _ := w.(*Response)
	switch {
	case a != nil && a.broken:
	case a != nil && a.last != nil:
		_ = a.last(t) // fails only if the client has disconnected
	case a != nil && a.begun:
		panic(http.ErrAbortHandler) // aborts the connection: a partial response must not look complete
	default:
		if t.Status == http.StatusServiceUnavailable || t.Status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", retryAfter(t.Err))
		}
		if t.Status == http.StatusUnsupportedMediaType && w.Header().Get("Accept-Encoding") == "" {
			w.Header().Set("Accept-Encoding", acceptedCodings)
		}
		d.Refuse(w, r, t)
	}
}

// Refuse responds with an error.
func (d Dialects) Refuse(w http.ResponseWriter, r *http.Request, t Error) {
	status, body := d.Failure(r.URL.Path, r.Header, t)
	w.Header().Set("Content-Type", JSONType)
	w.WriteHeader(status)
	if b, err := Encode(body); err == nil {
		_, _ = w.Write(b)
	}
}
