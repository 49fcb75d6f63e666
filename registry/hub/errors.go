package hub

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/registry/redact"
)

// Errors for use with [errors.Is].
var (
	ErrNotFound  = errors.New("not on the hub")                 // no such repository, revision or file, or no access to it
	ErrForbidden = errors.New("no access")                      // a gated repository, or a token without the right
	ErrLimited   = errors.New("the hub limits requests")        // too many requests
	ErrOffline   = errors.New("not in the cache")               // and HF_HUB_OFFLINE is set
	ErrChanged   = errors.New("the repository changed")         // during the run
	ErrChecksum  = errors.New("the checksum differs")           // from the published one
	ErrNoRanges  = errors.New("the server ignores ranges")      // so tensors cannot be read one by one
	errExpired   = errors.New("the signed address has expired") // and the file has to be resolved again
)

// StatusError is a response with an unexpected status.
type StatusError struct {
	What    string // the repository or file, as users name it
	Status  int
	Code    string // X-Error-Code
	Message string // X-Error-Message, clipped to one line

	retryAfter time.Duration
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.What, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Status == http.StatusTooManyRequests {
		text += "; wait some minutes and run this again to resume, or set HF_TOKEN for a higher limit"
	}
	return text
}

func (e *StatusError) Is(target error) bool {
	return target == ErrLimited && e.Status == http.StatusTooManyRequests
}

func statusError(what string, resp *http.Response) *StatusError {
	return &StatusError{
		What: what, Status: resp.StatusCode, Code: redact.Clip(resp.Header.Get("X-Error-Code")),
		Message: redact.Clip(resp.Header.Get("X-Error-Message")), retryAfter: retryAfter(resp.Header),
	}
}

// rateLimit matches the RateLimit header of draft-ietf-httpapi-ratelimit-headers-09: "api";r=0;t=55.
var rateLimit = regexp.MustCompile(`;\s*r\s*=\s*(\d+)\s*;\s*t\s*=\s*(\d{1,9})`)

// retryAfter returns the delay that a response asks for; 0 = none.
func retryAfter(h http.Header) time.Duration {
	if m := rateLimit.FindStringSubmatch(h.Get("RateLimit")); m != nil && m[1] == "0" {
		seconds, _ := strconv.Atoi(m[2])
		return time.Duration(seconds+1) * time.Second
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 && seconds < 1<<30 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// explain turns a status of the hub into an error with a remedy.
func (c *Client) explain(n Name, err error) error {
	var status *StatusError
	var unsent *sendError
	if errors.As(err, &unsent) && !c.reached.Load() {
		return fmt.Errorf("%w; check the network and HF_ENDPOINT, or set HF_HUB_OFFLINE=1 to use the cache", err)
	}
	if !errors.As(err, &status) {
		return err
	}
	token, variable := c.opts.Token, "HF_TOKEN"
	if n.Host == ModelScope {
		token, variable = c.opts.ModelScopeToken, "MODELSCOPE_API_TOKEN"
	}
	switch {
	case status.Code == "GatedRepo" && token == "":
		return fmt.Errorf("%s: %w: the repository is gated; accept its licence at %s, and set %s to a token of that account",
			n, ErrForbidden, n.Page(), variable)
	case status.Code == "GatedRepo":
		return fmt.Errorf("%s: %w: the repository is gated; accept its licence at %s with the account of the token in %s",
			n, ErrForbidden, n.Page(), variable)
	case status.Code == "RevisionNotFound":
		return fmt.Errorf("%s: %w: it has no revision %q; see %s", n, ErrNotFound, n.Revision, n.Page())
	case status.Code == "EntryNotFound":
		return fmt.Errorf("%s: %w: it has no such file", status.What, ErrNotFound)
	case (status.Code == "RepoNotFound" || status.Status == http.StatusUnauthorized) && token == "":
		return fmt.Errorf("%s: %w: there is no such repository, or it is private; check the name, or set %s to a token "+
			"with access", n, ErrNotFound, variable)
	case status.Code == "RepoNotFound" || status.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w: there is no such repository, or the token in %s is invalid or has no access",
			n, ErrNotFound, variable)
	case status.Status == http.StatusForbidden:
		return fmt.Errorf("%s: %w: %w; see %s", n, ErrForbidden, err, n.Page())
	case status.Status == http.StatusNotFound:
		return fmt.Errorf("%s: %w: %w", n, ErrNotFound, err)
	}
	return err
}
