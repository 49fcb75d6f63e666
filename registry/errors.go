package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrUnauthorized = errors.New("not authorized")       // credentials are missing, wrong or not sufficient
	ErrNotFound     = errors.New("not in the registry")  // no such repository, tag, manifest or blob
	ErrDigest       = errors.New("digest mismatch")      // bytes that do not match what names them
	ErrUnsupported  = errors.New("not supported")        // by the registry
	ErrNoHost       = errors.New("name without a host")  // a local name where a registry is needed
	ErrInterrupted  = errors.New("transfer interrupted") // a temporary failure of a connection or an exchange
)

// Most of a registry's answer that is read when it is an error.
const maxErrorBody = 64 << 10

// StatusError is an answer of a registry that is not what was asked for. It is an [ErrUnauthorized] or an [ErrNotFound]
// where its status says so.
type StatusError struct {
	Method     string
	URL        string // without query and user
	Status     int
	Code       string // of the specification's error codes; empty when the registry gave none
	Message    string // the registry's own words, at most a few lines
	RetryAfter time.Duration
	Header     http.Header // of the answer
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	switch {
	case e.Code != "" && e.Message != "":
		text += fmt.Sprintf(": %s: %s", e.Code, e.Message)
	case e.Code+e.Message != "":
		text += ": " + e.Code + e.Message
	}
	return text
}

func (e *StatusError) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	case ErrNotFound:
		return e.Status == http.StatusNotFound
	}
	return false
}

// expect gives an error unless the answer has one of these statuses. The body of an answer that is refused is read and closed.
func expect(resp *http.Response, want ...int) error {
	if slices.Contains(want, resp.StatusCode) {
		return nil
	}
	defer resp.Body.Close()
	e := &StatusError{Method: resp.Request.Method, URL: bare(resp.Request.URL), Status: resp.StatusCode, Header: resp.Header,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what arrived of it is better than nothing
	var told struct {
		Errors []struct{ Code, Message string }
	}
	if json.Unmarshal(body, &told) == nil && len(told.Errors) > 0 {
		e.Code, e.Message = clip(told.Errors[0].Code), clip(told.Errors[0].Message)
	} else if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		e.Message = clip(string(body))
	}
	return e
}

// bare is an address for people: query parameters may hold signatures and upload states.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// retryAfter reads a Retry-After header, which is seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// clip makes foreign text fit into one line of an error.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "..."
	}
	return s
}
