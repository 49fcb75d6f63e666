package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrUnauthorized = errors.New("not authorized")                      // credentials are missing, wrong or not sufficient
	ErrNotFound     = errors.New("not in the registry")                 // no such repository, tag, manifest or blob
	ErrDigest       = errors.New("digest mismatch")                     // bytes that do not match what names them
	ErrUnsupported  = errors.New("not supported")                       // by the registry
	ErrNoHost       = errors.New("name without a host")                 // a local name where a registry is needed
	ErrInterrupted  = errors.New("transfer interrupted")                // a temporary failure of a connection or an exchange
	ErrCertificate  = errors.New("the certificate is not trusted")      // TLS, but who answers cannot be told
	ErrPlainHTTP    = errors.New("it answers without TLS")              // where TLS was expected
	ErrTLS          = errors.New("it wants TLS, and was asked without") // the other way round
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
	if e.RetryAfter > maxRetryAfter {
		text += fmt.Sprintf(" (it asks for a pause of %s)", e.RetryAfter)
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

// AuthError says that a registry wants other credentials than it was given, or any. It is an [ErrUnauthorized].
type AuthError struct {
	Host  string // as people write it
	Given bool   // there were credentials
	Key   string // the file of the key, where it was that
	Err   error  // what the registry said
}

func (e *AuthError) Error() string {
	text := fmt.Sprintf("registry %s wants credentials, and there are none for it", e.Host)
	switch {
	case e.Key != "":
		text = fmt.Sprintf("registry %s does not take the key %s", e.Host, e.Key)
	case e.Given:
		text = fmt.Sprintf("registry %s refuses the credentials that it was given", e.Host)
	}
	if e.Err != nil && e.Err != ErrUnauthorized {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *AuthError) Unwrap() error        { return e.Err }
func (e *AuthError) Is(target error) bool { return target == ErrUnauthorized }

// expect gives an error unless the answer has one of these statuses. The body of an answer that is refused is read and closed.
func expect(resp *http.Response, want ...int) error {
	if slices.Contains(want, resp.StatusCode) {
		return nil
	}
	return statusError(resp)
}

// statusError reads and closes an answer that is an error.
func statusError(resp *http.Response) *StatusError {
	defer resp.Body.Close()
	e := &StatusError{Method: resp.Request.Method, URL: displayURL(resp.Request.URL), Status: resp.StatusCode, Header: resp.Header,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what arrived of it is better than nothing
	var told struct {
		Errors []struct{ Code, Message string }
		// Token servers' ways to say it.
		Description string `json:"error_description"`
		Error       any
		Details     any
		Message     any
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch err := json.Unmarshal(body, &told); {
	case err == nil && len(told.Errors) > 0:
		e.Code, e.Message = told.Errors[0].Code, told.Errors[0].Message
	case err == nil:
		for _, v := range []any{told.Description, told.Details, told.Message, told.Error} {
			if s, ok := v.(string); ok && s != "" {
				e.Message = s
				break
			}
		}
	case kind == "text/plain":
		e.Message = string(body)
	}
	secrets := append(headerSecrets(resp.Request.Header.Get("Authorization")), urlSecrets(resp.Request.URL)...)
	e.Code, e.Message = clip(redact(e.Code, secrets...)), clip(redact(e.Message, secrets...))
	return e
}

// secretsOf are the parts of an Authorization header that nobody may see.
func headerSecrets(header string) []string {
	_, value, _ := strings.Cut(header, " ")
	list := []string{header, value}
	if b, err := base64.StdEncoding.DecodeString(value); err == nil {
		_, password, _ := strings.Cut(string(b), ":")
		list = append(list, string(b), password)
	}
	return list
}

// Shorter values of a query are no secrets, and may be words of an error.
const minSecret = 8

// Parameters of the specifications that hold no secret, and that errors may be about.
var plainParameters = []string{
	"account", "artifactType", "client_id", "digest", "from", "last", "mount", "n", "scope", "service",
}

// secretsIn are the parts of an address that nobody may see: what signs it, in its query, and a password.
func urlSecrets(u *url.URL) []string {
	list := []string{u.User.String()}
	if len(u.RawQuery) >= minSecret {
		list = append(list, u.RawQuery)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if len(value) < minSecret || slices.Contains(plainParameters, key) {
			continue
		}
		list = append(list, value)
		if plain, err := url.QueryUnescape(value); err == nil && plain != value {
			list = append(list, plain)
		}
	}
	return list
}

// hide takes secrets out of the words of others, which may quote what they were given.
func redact(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	return text
}

// hideIn is hide for the error of a status.
func redactStatus(err error, secrets ...string) error {
	var status *StatusError
	if errors.As(err, &status) {
		status.Message = redact(status.Message, secrets...)
	}
	return err
}

// bare is an address for people: query parameters may hold signatures and upload states.
func displayURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

var addressPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// bareText makes the addresses in a text bare.
func redactURLs(text string) string {
	return addressPattern.ReplaceAllStringFunc(text, func(address string) string {
		address, _, _ = strings.Cut(address, "?")
		address, _, _ = strings.Cut(address, "#")
		scheme, rest, _ := strings.Cut(address, "://")
		host, path := rest, ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			host, path = rest[:i], rest[i:]
		}
		return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + path
	})
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

// clip makes foreign text fit into one line of an error, without what addresses in it may hold.
func clip(s string) string {
	s = redactURLs(s)
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
