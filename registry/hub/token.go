package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// token is a user's token for one hub, and where it came from, for messages.
type token struct {
	text, from string
	refused    atomic.Bool // and what was asked for is public: it is not sent any more
}

// tokenOf returns the token for the hub of a name.
func (c *Client) tokenOf(host string) *token {
	if host == ModelScope {
		return &c.scopeToken
	}
	return &c.hubToken
}

// tokenFor returns the token that a request is sent with, which only the endpoint gets.
func (c *Client) tokenFor(q call) string {
	t := c.tokenOf(q.host)
	home, err := url.Parse(c.endpoint(q.host))
	if err != nil || q.bare || t.refused.Load() || origin(home) != origin(q.url) {
		return ""
	}
	return t.text
}

// sendEither sends a request. If the hub refuses the user's token, it is sent once more without it: an expired token
// must not hide what everybody may read. If that is refused, too, the first response is returned.
func (c *Client) sendEither(ctx context.Context, q call) (*http.Response, error) {
	resp, err := c.send(ctx, q)
	if err != nil || c.opts.Strict || resp.Request.Header.Get("Authorization") == "" ||
		verdict.Of(q.step, resp.StatusCode) != verdict.Authorize || resp.Header.Get("X-Error-Code") == codeGated {
		return resp, err
	}
	q.bare = true
	second, err := c.send(ctx, q)
	if err != nil {
		discard(resp)
		return nil, err
	}
	if verdict.Of(q.step, second.StatusCode) == verdict.Authorize && second.Header.Get("X-Error-Code") != codeGated {
		discard(second)
		return resp, nil
	}
	refusal := c.statusError(q, resp) // which reads what the hub says
	discard(resp)
	if second.StatusCode >= http.StatusBadRequest {
		second.Header.Set("X-Error-Message", cmp.Or(refusal.Message, second.Header.Get("X-Error-Message")))
	}
	if t := c.tokenOf(q.host); second.StatusCode < http.StatusBadRequest && t.refused.CompareAndSwap(false, true) {
		said := ""
		if refusal.Message != "" {
			said = fmt.Sprintf(" (%q)", refusal.Message)
		}
		_ = c.skipped(fmt.Sprintf("%s: the hub refuses the token in %s%s; reading without it, as everybody may; "+
			"remove the token, or get another one", q.host, t.from, said))
	}
	return second, nil
}

// findToken finds the user's token, in the order of huggingface_hub. A file that has none is no error, because what is
// asked for may be public.
func (o *Options) findToken(getenv func(string) string, home string) (err error) {
	if isTrue(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return nil
	}
	for _, variable := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if text := getenv(variable); text != "" {
			o.TokenFrom = variable
			o.Token, err = cleanToken(text, variable)
			return err
		}
	}
	path := getenv("HF_TOKEN_PATH")
	if path == "" && home != "" {
		path = filepath.Join(home, "token")
	}
	if path == "" {
		return nil
	}
	if o.Token, o.tokenProblem = readToken(path); o.Token != "" {
		o.TokenFrom = path
	}
	return nil
}

// readToken reads a token from a file, which need not exist.
func readToken(path string) (string, error) {
	f, err := place.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limits.HubToken+1))
	if err != nil {
		return "", err
	}
	return cleanToken(string(b), path)
}

// cleanToken removes what editors and shells add to a token, and refuses what cannot be one.
func cleanToken(text, from string) (string, error) {
	text = strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(text))
	if len(text) > limits.HubToken || strings.ContainsFunc(text, isControl) {
		return "", fmt.Errorf("%s: it is not a token", from)
	}
	return text, nil
}

// said returns foreign text for a message, without the user's tokens.
func (c *Client) said(text string) string {
	return redact.Clip(redact.Secrets(text, c.hubToken.text, c.scopeToken.text))
}

// setTokens takes the tokens of the options.
func (c *Client) setTokens(o Options) {
	c.hubToken.text, c.hubToken.from = o.Token, cmp.Or(o.TokenFrom, "HF_TOKEN")
	c.scopeToken.text, c.scopeToken.from = o.ModelScopeToken, "MODELSCOPE_API_TOKEN"
}
