package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// second starts another server over the store of the first one. Like another process, it opens the store itself.
func second(t *testing.T, first *fixture) *fixture {
	t.Helper()
	store, err := store.Open(first.Options().Store.Root())
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(o *server.Options) { o.Store, o.Load = store, parrots })
}

// parrots loads a parrot for each model. It is safe for concurrent use.
func parrots(context.Context, server.Child, func(float64)) (pool.Model, error) {
	return servertest.NewParrot("Hello"), nil
}

// TestTwoServersOneStore: two servers create, copy, pull, delete and generate with one store at the same time, while it
// is pruned. All requests succeed, and the store stays consistent.
func TestTwoServersOneStore(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := servertest.NewRegistry(t, nil)
	first := serve(t, func(o *server.Options) { o.Load = parrots })
	servers := []*fixture{first, second(t, first)}
	pulled := host + "/team/talk:v1"
	first.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, pulled), 200)
	first.Has(t, "POST", "/api/push", fmt.Sprintf(`{"model":%q}`, pulled), 200, "success")
	first.Has(t, "DELETE", "/api/delete", fmt.Sprintf(`{"model":%q}`, pulled), 200)

	// The fixture copies a store with other file modes.
	if _, err := fsck.Run(t.Context(), first.Options().Store, fsck.Options{Repair: true}); err != nil {
		t.Fatal(err)
	}
	const rounds = 2
	var working, pruning sync.WaitGroup
	for i, f := range servers {
		working.Go(func() {
			for round := range rounds {
				own := fmt.Sprintf("own-%d-%d", i, round)
				for _, name := range []string{own, "common"} { // both servers write "common"
					f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":%q,"from":"plain","system":"%d %d","stream":false}`, name, i,
						round), 200, "success")
				}
				f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":%q,"destination":"copy-%s"}`, own, own), 200)
				f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"model":%q,"stream":false}`, pulled), 200, "success")
				f.Has(t, "POST", "/api/generate", fmt.Sprintf(`{"model":"copy-%s","prompt":"x","stream":false}`, own), 200, "Hello")
				// both servers load "plain"
				f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200, "Hello")
				f.Has(t, "DELETE", "/api/delete", fmt.Sprintf(`{"model":"copy-%s"}`, own), 200)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	pruning.Go(func() {
		for ctx.Err() == nil {
			_, err := collect.Prune(ctx, first.Options().Store, collect.PruneOptions{})
			if err != nil && !errors.Is(err, manifest.ErrBusy) && ctx.Err() == nil {
				t.Errorf("prune: %v", err)
			}
			select { // otherwise the servers hardly get the lock
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	working.Wait()
	stop()
	pruning.Wait()

	want := []string{"common:latest", pulled, "plain:latest", "talk:latest"}
	for i := range servers {
		for round := range rounds {
			want = append(want, fmt.Sprintf("own-%d-%d:latest", i, round))
		}
	}
	slices.Sort(want)
	for i, f := range servers {
		list, err := f.Options().Store.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range list {
			names = append(names, m.Name.String())
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("server %d has %v, want %v", i, names, want)
		}
		for _, name := range want {
			if strings.HasPrefix(name, "own") || name == "common:latest" {
				f.Has(t, "POST", "/api/show", fmt.Sprintf(`{"model":%q}`, name), 200, `"system":`)
			}
		}
	}
	report, err := fsck.Run(t.Context(), first.Options().Store, fsck.Options{})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", report.Problems, err)
	}

	// A model that one server deletes is not found by the other, even if the other has it loaded. If one server creates it
	// again, the other loads the new model.
	other := servers[1]
	first.Has(t, "POST", "/api/generate", `{"model":"common","prompt":"x","stream":false}`, 200, "Hello")
	first.Has(t, "GET", "/api/ps", "", 200, `"common:latest"`)
	other.Has(t, "DELETE", "/api/delete", `{"model":"common"}`, 200)
	first.Has(t, "POST", "/api/generate", `{"model":"common","prompt":"x","stream":false}`, 404, "not found")
	other.Has(t, "POST", "/api/copy", `{"source":"talk","destination":"common"}`, 200)
	first.Has(t, "POST", "/api/show", `{"model":"common"}`, 200, `"system":"brief"`)
	first.Has(t, "POST", "/api/generate", `{"model":"common","prompt":"x","stream":false}`, 200, "Hello")
}
