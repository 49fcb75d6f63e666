package layout

import (
	"context"
	"errors"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
)

// A store is not read without its lock while a collection holds it.
func TestSourceWaits(t *testing.T) {
	s := rt.NewStore(t)
	release, err := s.Locks().Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openSource(ctx, newClient(t, nil), named(t, s, "m")); !errors.Is(err, context.Canceled) {
		t.Errorf("opened beside a collection: %v", err)
	}
}
