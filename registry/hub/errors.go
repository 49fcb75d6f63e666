package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// Errors for use with [errors.Is].
var (
	ErrNotFound  = errors.New("not on the hub")            // no such repository, revision or file, or no access to it
	ErrForbidden = errors.New("no access")                 // a gated repository, or a token without the right
	ErrLimited   = errors.New("the hub limits requests")   // too many requests
	ErrOffline   = errors.New("not in the cache")          // and HF_HUB_OFFLINE is set
	ErrChanged   = errors.New("the repository changed")    // during the run
	ErrChecksum  = errors.New("the checksum differs")      // from the published one
	ErrNoRanges  = errors.New("the server ignores ranges") // so tensors cannot be read one by one
	// errExpired: the address that the hub directed to is refused, usually because its signature has expired. The file is
	// resolved again.
	errExpired = errors.New("the server that the hub directs to refuses the file")
)

// StatusError is a response with an unexpected status.
type StatusError struct {
	What    string // the repository or file, as users name it
	Status  int
	Code    string // X-Error-Code
	Message string // what the server says of it, clipped to one line

	step       verdict.Step
	retryAfter time.Duration
	origin     string // of the server
	raise      string // variable of a token with which more requests are allowed; "" = a token was sent
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%s: %d %s", e.What, e.Status, http.StatusText(e.Status)))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Status == http.StatusTooManyRequests {
		text += "; wait some minutes and run this again to resume"
		if e.raise != "" {
			text += fmt.Sprintf(", or set %s for a higher limit", e.raise)
		}
	}
	return text
}

func (e *StatusError) Is(target error) bool {
	return target == ErrLimited && e.Status == http.StatusTooManyRequests
}

// statusError describes a response that failed. It reads the body, where the text may be.
func (c *Client) statusError(q call, resp *http.Response) *StatusError {
	text := resp.Header.Get("X-Error-Message")
	if text == "" {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
		text = errorText(body)
	}
	wait, _ := verdict.Delay(resp.Header, time.Now())
	e := &StatusError{
		What: q.what, Status: resp.StatusCode, Code: redact.Clip(resp.Header.Get("X-Error-Code")), Message: c.said(text),
		step: q.step, retryAfter: wait, origin: origin(q.url),
	}
	if t := c.tokenOf(q.host); t.text == "" {
		e.raise = t.from
	}
	return e
}

// maxErrorText bounds what is read of the body of a failure.
const maxErrorText = 64 << 10

// codeGated is the hub's code for a repository whose licence has to be accepted.
const codeGated = "GatedRepo"

// unreached returns what to do if no server has responded.
func (c *Client) unreached(host string) string {
	variable, usual := "HF_ENDPOINT", defaultEndpoint
	if host == ModelScope {
		variable, usual = "MODELSCOPE_ENDPOINT", defaultModelScope
	}
	remedy := fmt.Sprintf("check the network, or set %s to a mirror", variable)
	if c.endpoint(host) != usual {
		remedy = fmt.Sprintf("check the network and %s", variable)
	}
	if host == HuggingFace && c.opts.Cache != "" {
		remedy += ", or set HF_HUB_OFFLINE=1 to use the cache"
	}
	return remedy
}

// explain turns a status of the hub into an error with a remedy.
func (c *Client) explain(n Name, err error) error {
	var status *StatusError
	var unsent *sendError
	if errors.As(err, &unsent) && !c.reached.Load() {
		return fmt.Errorf("%w; %s", err, c.unreached(n.Host))
	}
	if !errors.As(err, &status) {
		return err
	}
	if errors.Is(err, errExpired) {
		return err // it says nothing about the repository
	}
	token := c.tokenOf(n.Host)
	said := ""
	if status.Message != "" {
		said = fmt.Sprintf("; the hub says: %s", status.Message)
	}
	authorize := verdict.Of(status.step, status.Status) == verdict.Authorize
	switch {
	case status.Code == codeGated && token.text == "":
		return fmt.Errorf("%s: %w: the repository is gated; accept its licence at %s, and set %s to a token of that account",
			n, ErrForbidden, n.Page(), token.from)
	case status.Code == codeGated && token.refused.Load():
		return fmt.Errorf("%s: %w: the repository is gated, and the hub refuses the token in %s; accept the licence at %s, "+
			"and put a token of that account there", n, ErrForbidden, token.from, n.Page())
	case status.Code == codeGated:
		return fmt.Errorf("%s: %w: the repository is gated; accept its licence at %s with the account of the token in %s%s",
			n, ErrForbidden, n.Page(), token.from, said)
	case status.Code == "RevisionNotFound":
		return fmt.Errorf("%s: %w: it has no revision %q; see %s", n, ErrNotFound, n.Revision, n.Page())
	case status.Code == "EntryNotFound":
		return fmt.Errorf("%s: %w: it has no such file", status.What, ErrNotFound)
	case status.Status == http.StatusUnauthorized && token.text != "" && status.Code != "RepoNotFound":
		return fmt.Errorf("%s: %w: the hub refuses the token in %s, and the repository is private or does not exist; "+
			"remove the token, or get another one%s", n, ErrNotFound, token.from, said)
	case (status.Code == "RepoNotFound" || status.Status == http.StatusUnauthorized) && token.text == "":
		return fmt.Errorf("%s: %w: there is no such repository, or it is private; check the name, or set %s to a token "+
			"with access", n, ErrNotFound, token.from)
	case status.Code == "RepoNotFound":
		return fmt.Errorf("%s: %w: there is no such repository, or the token in %s is invalid or has no access%s",
			n, ErrNotFound, token.from, said)
	case authorize:
		return fmt.Errorf("%s: %w: %w; see %s", n, ErrForbidden, err, n.Page())
	case status.Status == http.StatusNotFound:
		return fmt.Errorf("%s: %w: %w", n, ErrNotFound, err)
	}
	return err
}
