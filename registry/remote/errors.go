package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// Errors for use with [errors.Is].
var (
	ErrSkipped = fault.Register(errors.New("an optional step failed"), fault.Kind{
		Name: "registry/remote.ErrSkipped", Means: "an optional step failed, and `--strict` was given",
		Rank:   fault.Registry,
		Remedy: "without --strict this is a warning, and the command goes on",
	})
	ErrUnauthorized = fault.Register(errors.New("not authorized"), fault.Kind{
		Name: "registry/remote.ErrUnauthorized", Means: "credentials for the registry are missing, wrong or insufficient",
		Rank: fault.Registry + 1, Transfer: fault.Forbidden,
		Advice: "`ingot login` on the server's machine stores credentials",
	})
	ErrNotFound = fault.Register(errors.New("not in the registry"), fault.Kind{
		Name: "registry/remote.ErrNotFound", Means: "the registry has no such repository, tag, manifest or blob",
		Rank: fault.Registry + 2, Transfer: fault.NotFound,
		Remedy: "check the name and its tag",
	})
	ErrDigest = fault.Register(errors.New("digest mismatch"), fault.Kind{
		Name: "registry/remote.ErrDigest", Means: "content does not match its digest",
		Rank: fault.Registry + 3, Transfer: fault.Gateway,
	})
	ErrUnsupported = fault.Register(errors.New("not supported"), fault.Kind{
		Name: "registry/remote.ErrUnsupported", Means: "the registry does not support an operation",
		Rank: fault.Registry + 4, Transfer: fault.Gateway,
	})
	ErrInterrupted = fault.Register(errors.New("transfer interrupted"), fault.Kind{
		Name: "registry/remote.ErrInterrupted", Means: "a connection or an exchange failed temporarily",
		Rank: fault.Registry + 5, Transfer: fault.Gateway,
	})
	ErrCertificate = fault.Register(errors.New("the certificate is not trusted"), fault.Kind{
		Name: "registry/remote.ErrCertificate", Means: "the server's certificate cannot be verified",
		Rank: fault.Registry + 6, Transfer: fault.Gateway,
		Remedy: "trust your own authority with --ca-file FILE, or any certificate with --insecure",
	})
	ErrPlainHTTP = fault.Register(errors.New("the server does not use TLS"), fault.Kind{
		Name: "registry/remote.ErrPlainHTTP", Means: "TLS was expected",
		Rank: fault.Registry + 7, Transfer: fault.Gateway,
		Remedy: "connect without TLS with --plain-http",
	})
	ErrTLS = fault.Register(errors.New("the server requires TLS"), fault.Kind{
		Name: "registry/remote.ErrTLS", Means: "plain HTTP was tried",
		Rank: fault.Registry + 8, Transfer: fault.Gateway,
		Remedy: "leave out --plain-http; for a registry on this machine use TLS with --insecure or --ca-file FILE",
	})
	ErrClientCertificate = fault.Register(errors.New("the server requires a client certificate"), fault.Kind{
		Name: "registry/remote.ErrClientCertificate", Means: "the server wants to see a certificate of its user",
		Rank: fault.Registry + 40, Transfer: fault.Forbidden,
		Remedy: "--cert-dir DIR names the folder with your *.cert and *.key",
	})
	ErrNoRegistry = fault.Register(errors.New("not a registry"), fault.Kind{
		Name: "registry/remote.ErrNoRegistry", Means: "a host does not answer as registries do",
		Rank: fault.Registry + 41, Transfer: fault.Gateway,
		Remedy: "check the registry's host and port; nothing is stored",
	})

	ErrNoHost = errors.New("name without a host") // a local name where a registry is required
)

// maxErrorBody limits how much of an error response's body is read.
const maxErrorBody = 64 << 10

// StatusError is a response with an unexpected status. It is an [ErrUnauthorized] for 401 and 403, and an [ErrNotFound]
// for 404.
type StatusError struct {
	Method     string
	URL        string // without query and userinfo
	Status     int
	Code       string        // error code of the specification; empty if the registry sent none
	Message    string        // the registry's message, clipped to one line
	RetryAfter time.Duration // as of verdict.Delay; 0: none
	Header     http.Header   // of the response
	Digests    []string      // that its body names, such as those of blobs that a manifest lacks

	origin string // of the server
}

var digestPattern = regexp.MustCompile("sha256:[0-9a-f]{64}")

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	switch {
	case e.Code != "" && e.Message != "":
		text += fmt.Sprintf(": %s: %s", e.Code, e.Message)
	case e.Code+e.Message != "":
		text += ": " + e.Code + e.Message
	}
	if e.RetryAfter > waiting.MaxHint {
		text += fmt.Sprintf(" (Retry-After: %s)", e.RetryAfter)
	}
	return text
}

func (e *StatusError) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return verdict.Of("", e.Status) == verdict.Authorize
	case ErrNotFound:
		return e.Status == http.StatusNotFound
	}
	return false
}

// AuthError means that a registry rejected the credentials, or requires some and there are none. It is an
// [ErrUnauthorized].
type AuthError struct {
	Host   string // as the user wrote it
	Given  bool   // credentials were sent
	Place  string // what they come from: a file, a credential helper, a variable, a flag; empty: unknown
	Logout string // what `ingot logout` removes them by; empty if it cannot
	Stored bool   // they are not for this command only
	Key    string // file of the SSH key, if one was used
	Err    error  // the registry's response
}

func (e *AuthError) Error() string {
	text := fmt.Sprintf("registry %s requires credentials, and there are none for it", e.Host)
	switch {
	case e.Key != "":
		text = fmt.Sprintf("registry %s rejected the key %s", e.Host, e.Key)
	case e.Place != "":
		text = fmt.Sprintf("registry %s rejected the credentials from %s", e.Host, e.Place)
	case e.Given:
		text = fmt.Sprintf("registry %s rejected the credentials", e.Host)
	}
	if e.Err != nil && e.Err != ErrUnauthorized {
		text += ": " + e.Err.Error()
	}
	return text
}

// passedOver returns the warning for stored credentials that were refused, where none are needed.
func (e *AuthError) passedOver() error {
	remedy := "; remove them there"
	if e.Logout != "" {
		remedy = fmt.Sprintf("; `ingot logout %s` removes them", e.Logout)
	}
	return fmt.Errorf("the credentials from %s were refused, so the content is read without any%s",
		cmp.Or(e.Place, "the keychain"), remedy)
}

func (e *AuthError) Unwrap() error { return e.Err }

func (e *AuthError) Is(target error) bool { return target == ErrUnauthorized }

// Expect returns nil if the response has one of these statuses. Otherwise it returns a [*StatusError] and closes the
// body.
func Expect(resp *http.Response, want ...int) error {
	if slices.Contains(want, resp.StatusCode) {
		return nil
	}
	return statusError(resp)
}

// statusError turns a response into an error. It reads and closes the body.
func statusError(resp *http.Response) *StatusError {
	defer resp.Body.Close()
	e := &StatusError{Method: resp.Request.Method, URL: redact.DisplayURL(resp.Request.URL),
		Status: resp.StatusCode, Header: resp.Header, origin: origin(resp.Request.URL)}
	e.RetryAfter, _ = verdict.Delay(resp.Header, time.Now())
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is better than none
	e.Digests = digestPattern.FindAllString(string(body), -1)
	said := parseError(body)
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); !said.isJSON && kind == "text/plain" {
		said.Message = string(body)
	}
	e.Code, e.Message = said.Code, said.Message
	secrets := append(redact.HeaderSecrets(resp.Request.Header.Get("Authorization")),
		redact.URLSecrets(resp.Request.URL)...)
	e.Code, e.Message = redact.Clip(redact.Secrets(e.Code, secrets...)), redact.Clip(redact.Secrets(e.Message, secrets...))
	return e
}

// errorBody is what an error response says.
type errorBody struct {
	Code, Message string
	isJSON        bool
}

// parseError parses the body of an error response: the specification's first error, or the message of a token server.
func parseError(body []byte) (said errorBody) {
	var doc struct {
		Errors []errorBody
		// Fields that token servers use instead.
		Description string `json:"error_description"`
		Error       any
		Details     any
		Message     any
	}
	if json.Unmarshal(body, &doc) != nil {
		return said
	}
	if len(doc.Errors) > 0 {
		said = doc.Errors[0]
	} else {
		for _, v := range []any{doc.Description, doc.Details, doc.Message, doc.Error} {
			if s, ok := v.(string); ok && s != "" {
				said.Message = s
				break
			}
		}
	}
	said.isJSON = true
	return said
}

// redactStatus removes secrets from the message of a [*StatusError].
func redactStatus(err error, secrets ...string) error {
	var status *StatusError
	if errors.As(err, &status) {
		status.Message = redact.Secrets(status.Message, secrets...)
	}
	return err
}
