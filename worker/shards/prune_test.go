package shards

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Prune removes the parts of images that were not used for long, but nothing that others share, and nothing while a
// worker runs.
func TestPrune(t *testing.T) {
	own := emptyStore(t)
	if all, err := Prune(t.Context(), own, PruneOptions{}); err != nil || len(all) > 0 {
		t.Fatalf("a store without parts: %v, %v", all, err)
	}
	f := folder(t, own)
	plain, old := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	packed, used := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{Type: quantize.Int4})
	source, _ := served(t, plain, old)
	if _, err := f.Prepare(t.Context(), old.Digest, Place{Rank: 1, Size: 2}, source, nil); err != nil {
		t.Fatal(err)
	}
	source, _ = served(t, packed, used)
	if _, err := f.Prepare(t.Context(), used.Digest, Place{Rank: 1, Size: 2}, source, nil); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-ingest.Age - time.Hour)
	if err := os.Chtimes(f.parts.Path(usedDir, old.Digest.Encoded()), long, long); err != nil {
		t.Fatal(err)
	}

	release, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var busy *lock.BusyError
	if _, err := Prune(t.Context(), own, PruneOptions{}); !errors.As(err, &busy) {
		t.Errorf("while a worker runs: %v", err)
	}
	release()

	for _, dry := range []bool{true, false} {
		all, err := Prune(t.Context(), own, PruneOptions{DryRun: dry})
		if err != nil || len(all) != 1 || all[0].Image != old.Digest || all[0].Bytes < 1<<20 {
			t.Fatalf("dry %v: %+v, %v", dry, all, err)
		}
		if _, err := os.Stat(f.parts.BlobPath(old.Digest)); (err == nil) != dry {
			t.Errorf("dry %v: the old image: %v", dry, err)
		}
	}
	if _, whole := Has(f.parts, used.Digest); !whole {
		t.Error("blobs of the image that is used are gone")
	}
	if all, err := Prune(t.Context(), own, PruneOptions{All: true}); err != nil || len(all) != 1 {
		t.Errorf("all: %+v, %v", all, err)
	}
	left, err := os.ReadDir(f.parts.Path("blobs", "sha256"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d blobs are left, %v", len(left), err)
	}
}
