package ingest_test

import (
	"context"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// A collection spares the image that a process uses, whatever happens to its names, and nothing after that.
func TestUse(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "m", "weights")
	use := func(ctx context.Context, d digest.Digest) (func(), error) { return ingest.Use(ctx, s, d) }
	found, got, release, err := ingest.Resolve(t.Context(), s, storetest.MustName(t, "m"), use)
	if err != nil || got != d || found.String() != "m:latest" {
		t.Fatal(found, got, err)
	}
	storetest.PutModel(t, s, "m", "others")
	storetest.Prune(t, s, collect.PruneOptions{Unfinished: true})
	storetest.WantBlobs(t, s, map[string]bool{"weights": true, "others": true})
	storetest.Remove(t, s, "m")
	storetest.WantBlobs(t, s, map[string]bool{"weights": true, "others": false})
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
	release()
	storetest.Prune(t, s, collect.PruneOptions{})
	storetest.WantBlobs(t, s, map[string]bool{"weights": false})
	if left := storetest.Files(t, s, store.IngestDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What a killed process used is garbage, and so is its lock file.
func TestUseKilled(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "m", "weights")
	storetest.Leave(t, s, "using-"+d.Encoded()+"-killed", "", 0)
	storetest.Remove(t, s, "m")
	storetest.WantBlobs(t, s, map[string]bool{"weights": false})
	if left := storetest.Files(t, s, store.IngestDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A name that is moved while it is resolved stands for its new image, since a collection may take the old one before it
// is used.
func TestResolveMoved(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "m", "one")
	var second digest.Digest
	moved := 0
	use := func(ctx context.Context, d digest.Digest) (func(), error) {
		if moved++; moved == 1 {
			second = storetest.PutModel(t, s, "m", "two")
			storetest.Prune(t, s, collect.PruneOptions{})
		}
		return ingest.Use(ctx, s, d)
	}
	_, d, release, err := ingest.Resolve(t.Context(), s, storetest.MustName(t, "m"), use)
	if err != nil || d != second || moved != 2 {
		t.Fatal(d, second, moved, err)
	}
	release()
	if left := storetest.Files(t, s, store.IngestDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
