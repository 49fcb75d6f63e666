package registry

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
)

// newClient returns a client without credentials that retries without delays.
func newClient(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Connection: remote.Options{Keychain: authn.NewMultiKeychain()}}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.conn.Sleep = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	if c.conn.Net != nil {
		t.Cleanup(c.conn.Net.CloseIdle)
	}
	return c
}

// putSmall pushes a small blob to the repository of a name.
func putSmall(t testing.TB, c *Client, name manifest.Name) error {
	t.Helper()
	p, err := c.preparePusher(nil, name, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.sendBytes(t.Context(), [][]byte{[]byte("x")})
}

// repositoryAt returns the repository of a name.
func repositoryAt(t testing.TB, c *Client, model, actions string) *remote.Repository {
	t.Helper()
	n, err := manifest.ParseName(model)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.conn.Repository(n, actions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
