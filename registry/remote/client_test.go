package remote

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
)

// authClient returns a client that retries without delays, and has no SSH key and no mirrors unless the options name
// them.
func authClient(t *testing.T, opts Options) *Client {
	t.Helper()
	t.Setenv(IdentityEnv, "")
	t.Setenv("HOME", t.TempDir())
	if opts.Mirrors == nil {
		opts.Mirrors = []Mirror{}
	}
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	c.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if c.Net != nil {
		t.Cleanup(c.Net.CloseIdle)
	}
	return c
}

func repositoryOf(t *testing.T, c *Client, model, actions string, from ...string) *Repository {
	t.Helper()
	n, err := manifest.ParseName(model)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Repository(n, actions, from...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// askFor sends a request to the repository and returns the response's text.
func (r *Repository) askFor(method, what string) (string, error) {
	req, err := r.Request(context.Background(), method, r.URL(what), nil)
	if err != nil {
		return "", err
	}
	return r.responseBody(req)
}

func (r *Repository) responseBody(req *http.Request) (string, error) {
	resp, err := r.Do(req)
	if err != nil {
		return "", err
	}
	if err := Expect(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		return "", err
	}
	defer Drain(resp)
	b := make([]byte, 100)
	n, _ := resp.Body.Read(b)
	return string(b[:n]), nil
}

func wantSuccess(t *testing.T, r *Repository, method, what string) {
	t.Helper()
	got, err := r.askFor(method, what)
	if err != nil {
		t.Fatalf("%s %s: %v", method, what, err)
	}
	if got != "ok" && method != http.MethodHead {
		t.Errorf("%s %s: %q", method, what, got)
	}
}
