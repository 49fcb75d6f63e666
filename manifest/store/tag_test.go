package store_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/storetest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestTag(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "a", "w")
	storetest.PutModel(t, s, "h.io/b:2", "old")
	store.Clock(func() time.Time { return storetest.Noon.Add(time.Hour) })(s)
	for _, dst := range []string{"h.io/b:2", "c"} { // an existing name and a new one
		if err := s.Tag(t.Context(), storetest.MustName(t, "a"), storetest.MustName(t, dst)); err != nil {
			t.Fatal(err)
		}
		e, err := s.Resolve(t.Context(), storetest.MustName(t, dst))
		if err != nil || e.Digest != d {
			t.Errorf("%s is %+v, %v, want %s", dst, e, err, d)
		}
	}
	if err := s.Tag(t.Context(), storetest.MustName(t, "a@"+string(d)), storetest.MustName(t, "d")); err != nil {
		t.Error(err)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := storetest.Names(t, s), []string{"a:latest", "c:latest", "d:latest", "h.io/b:2"}; !slices.Equal(got,
		want) {
		t.Errorf("names %v, want %v", got, want)
	}
	if !list[0].Modified.Equal(storetest.Noon) || !list[1].Modified.Equal(storetest.Noon.Add(time.Hour)) ||
		list[1].Size != list[0].Size ||
		list[1].ModelType != "llama" {
		t.Errorf("entries %+v", list)
	}
	for _, name := range []string{"a", "d", "h.io/b:2"} {
		storetest.Remove(t, s, name)
	}
	storetest.Prune(t, s, collect.PruneOptions{})
	storetest.WantBlobs(t, s, map[string]bool{"w": true, "old": false})
	storetest.CheckStore(t, s)
	storetest.Remove(t, s, "c")
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

func TestTagErrors(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "a", "w")
	if err := s.Tag(t.Context(), storetest.MustName(t, "b"),
		storetest.MustName(t, "c")); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
	for _, dst := range []manifest.Name{storetest.MustName(t, "c@"+string(d)), {Path: "../c"}} {
		if err := s.Tag(t.Context(), storetest.MustName(t, "a"), dst); !errors.Is(err, manifest.ErrInvalidName) {
			t.Errorf("as %s: %v", dst, err)
		}
	}
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"a:latest"}) {
		t.Errorf("names %v", got)
	}
}

// TestKilledWriter: what a process left that was killed while it wrote the index is gone with the next change.
func TestKilledWriter(t *testing.T) {
	s := storetest.NewStore(t)
	left := s.Path(store.IngestDir, ocispec.ImageIndexFile+"-123")
	other := s.Path(store.IngestDir, "notes")
	for _, path := range []string{left, other} {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	storetest.PutModel(t, s, "model", "weights")
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, want it removed", left, err)
	}
	if _, err := os.Lstat(other); err != nil {
		t.Error(err)
	}
}
