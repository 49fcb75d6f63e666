package holds_test

import (
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/server/holds"
)

// Requests of one image share a note, and a collection spares the image until the last of them ends.
func TestResolve(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "m", "weights")
	h := &holds.Holds{Store: s}
	var ends []func()
	for range 3 {
		ctx, end := holds.With(t.Context())
		ends = append(ends, end)
		found, got, err := h.Resolve(ctx, storetest.MustName(t, "m"))
		if err != nil || got != d || found.String() != "m:latest" {
			t.Fatal(found, got, err)
		}
	}
	if notes := storetest.Files(t, s, store.IngestDir); len(notes) != 1 {
		t.Errorf("notes of three requests: %v", notes)
	}
	storetest.Remove(t, s, "m")
	for _, end := range ends {
		storetest.Prune(t, s, collect.PruneOptions{})
		storetest.WantBlobs(t, s, map[string]bool{"weights": true})
		end()
	}
	storetest.Prune(t, s, collect.PruneOptions{})
	storetest.WantBlobs(t, s, map[string]bool{"weights": false})
	if notes := storetest.Files(t, s, store.IngestDir); len(notes) > 0 {
		t.Errorf("left: %v", notes)
	}
}

// Users that come and go at once leave nothing, and may release twice.
func TestUseAtOnce(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "m", "weights")
	h := &holds.Holds{Store: s}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			release, err := h.Use(t.Context(), d)
			if err != nil {
				t.Error(err)
				return
			}
			release()
			release()
		})
	}
	wait.Wait()
	if notes := storetest.Files(t, s, store.IngestDir); len(notes) > 0 {
		t.Errorf("left: %v", notes)
	}
}
