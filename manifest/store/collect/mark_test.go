package collect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestRemoveCollects(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "shared", "only a")
	storetest.PutModel(t, s, "b", "shared", "only b")
	storetest.Remove(t, s, "a")
	storetest.WantBlobs(t, s, map[string]bool{"shared": true, "only a": false, "only b": true})
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	storetest.CheckStore(t, s)
	storetest.Remove(t, s, "b")
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
	if err := collect.Remove(t.Context(), s, storetest.MustName(t, "b")); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("second removal: %v", err)
	}
	storetest.CheckStore(t, s)
}

func TestRemoveOneOfTwoNames(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "a:1", "w")
	storetest.PutModel(t, s, "a:2", "w")
	storetest.PutModel(t, s, "b", "w")
	storetest.Remove(t, s, "a:1")
	storetest.WantBlobs(t, s, map[string]bool{"w": true})
	storetest.CheckStore(t, s)
	storetest.Remove(t, s, "a@"+string(d)) // all tags of that path with this digest
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	if err := collect.Remove(t.Context(), s,
		storetest.MustName(t, "b@"+string(storetest.SomeDigest))); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("other digest: %v", err)
	}
}

// A collection removes the blobs of a replaced model, but no files in ingest/ or blobs/ that it does not know.
func TestRemoveCollectsReplaced(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "old")
	storetest.PutModel(t, s, "a", "new")
	storetest.PutModel(t, s, "b", "b")
	if err := os.WriteFile(s.Path("ingest", "partial"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Not a blob, so not written by this program.
	if err := os.WriteFile(s.Path("blobs", "sha256", "README"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.Remove(t, s, "b")
	storetest.WantBlobs(t, s, map[string]bool{"old": false, "new": true, "b": false})
	if got := storetest.Files(t, s, "ingest"); !slices.Equal(got, []string{"partial"}) {
		t.Errorf("ingest contains %v", got)
	}
	if !slices.Contains(storetest.Files(t, s, "blobs/sha256"), "README") {
		t.Error("a file that is not a blob was deleted")
	}
}

func TestCollectKeepsReferrers(t *testing.T) {
	s := storetest.NewStore(t)
	signed := storetest.PutModel(t, s, "signed", "w")
	storetest.PutModel(t, s, "other", "o")
	// The referrer of a referrer comes first, to show that the order in the index is irrelevant.
	sigBody := storetest.Artifact(t, s, "signature", signed)
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest,
		storetest.Artifact(t, s, "attestation", digest.FromString(sigBody)))
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, sigBody)
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, storetest.Artifact(t, s, "standalone", ""))

	storetest.Remove(t, s, "other")
	storetest.WantBlobs(t, s, map[string]bool{"w": true, "o": false, "signature": true, "attestation": true,
		"standalone": true,
		sigBody:      true})
	storetest.Remove(t, s, "signed")
	storetest.WantBlobs(t, s, map[string]bool{"w": false, "signature": false, "attestation": false, "standalone": true,
		sigBody: false})
	idx, err := s.ReadIndex()
	if err != nil {
		t.Fatal(err)
	}
	if len(idx.Manifests) != 1 {
		t.Errorf("the index still contains %+v", idx.Manifests)
	}
	storetest.CheckStore(t, s)
}

// Indexes (multi-platform images) keep what their manifests refer to. Absent manifests are not an error.
func TestCollectFollowsIndexes(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "demo", "w")
	child := storetest.Artifact(t, s, "layer", "")
	d, n, err := s.PutBytes(t.Context(), []byte(child))
	if err != nil {
		t.Fatal(err)
	}
	// A manifest that is also a layer of another one is still followed.
	storetest.PutEntry(t, s, "asLayer", ocispec.MediaTypeImageManifest,
		fmt.Sprintf(`{"layers":[{"digest":"%s","size":%d}]}`, d, n))
	storetest.PutEntry(t, s, "multi", ocispec.MediaTypeImageIndex, fmt.Sprintf(
		`{"schemaVersion":2,"manifests":[{"mediaType":"%s","digest":"%s","size":%d},{"mediaType":"%[1]s","digest":"%s",`+
			`"size":1}]}`,
		ocispec.MediaTypeImageManifest, d, n, storetest.SomeDigest))
	storetest.Remove(t, s, "demo")
	storetest.WantBlobs(t, s, map[string]bool{"w": false, "layer": true, child: true})
	storetest.Remove(t, s, "multi")
	storetest.WantBlobs(t, s, map[string]bool{"layer": false, child: true})
}

// Entries of unknown media types keep what they seem to refer to. Entries that are not manifests are kept themselves.
func TestCollectKeepsUnknownTypes(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "demo", "w")
	x := storetest.PutBlob(t, s, "x", "blob")
	body := fmt.Sprintf(`{"mediaType":"application/x-other","blobs":[{"digest":"%s","size":%d}]}`, x.Digest, x.Size)
	large := strings.Repeat(" ", manifest.MaxManifestSize+1)
	for _, b := range []string{body, "<xml/>", large} {
		storetest.PutEntry(t, s, "", "application/x-other", b)
	}
	storetest.Remove(t, s, "demo")
	storetest.WantBlobs(t, s, map[string]bool{"w": false, "blob": true, body: true, "<xml/>": true, large: true})
}

// The blobs that a damaged model refers to are unknown, so nothing is deleted until the model is removed.
func TestCollectStopsAtDamage(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "a")
	d := storetest.PutModel(t, s, "broken", "b")
	os.Remove(s.BlobPath(d))
	err := collect.Remove(t.Context(), s, storetest.MustName(t, "a"))
	var kept *collect.KeptError
	if !errors.As(err, &kept) || !errors.Is(err, manifest.ErrBlobsKept) || !errors.Is(err, manifest.ErrBlobMissing) ||
		!strings.Contains(err.Error(), "broken:latest") {
		t.Fatalf("error %v", err)
	}
	storetest.WantBlobs(t, s, map[string]bool{"a": true, "b": true})
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"broken:latest"}) {
		t.Errorf("names %v", got)
	}
	storetest.Remove(t, s, "broken")
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

func TestRemoveWhileWriting(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "a")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half := storetest.PutBlob(t, s, "w", "not yet in a model")
	err = collect.Remove(t.Context(), s, storetest.MustName(t, "a"))
	var busy *lock.BusyError
	if !errors.Is(err, manifest.ErrBlobsKept) || !errors.As(err, &busy) {
		t.Fatalf("error %v", err)
	}
	if len(busy.Holders) != 1 || busy.Holders[0].PID != os.Getpid() ||
		!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("holders %v in %q", busy.Holders, err)
	}
	storetest.WantBlobs(t, s, map[string]bool{"a": true, "not yet in a model": true})
	if got := storetest.Names(t, s); len(got) != 0 {
		t.Errorf("names %v", got)
	}
	if _, err := s.Put(t.Context(), storetest.MustName(t, "b"),
		manifest.Image{Layers: []manifest.Layer{half}}); err != nil {
		t.Fatal(err)
	}
	release()
	release()
	storetest.PutModel(t, s, "c", "c")
	storetest.Remove(t, s, "c")
	storetest.WantBlobs(t, s, map[string]bool{"a": false, "not yet in a model": true})
	if got := storetest.Files(t, s, "holders"); len(got) > 0 {
		t.Errorf("notes left: %v", got)
	}
}

func TestLockWaitsForCollection(t *testing.T) {
	s := storetest.NewStore(t)
	release, err := s.Locks().Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := s.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock during a collection: %v", err)
	}
	got := make(chan error)
	go func() {
		release, err := s.Lock(t.Context())
		if err == nil {
			release()
		}
		got <- err
	}()
	release()
	if err := <-got; err != nil {
		t.Errorf("Lock after the collection: %v", err)
	}
}

func TestIndexLockHeldTooLong(t *testing.T) {
	s := storetest.NewStore(t)
	unlock, err := s.Locks().Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	l := storetest.PutBlob(t, s, "w", "w")
	store.Waits(0, 0)(s)
	if _, err := s.Put(t.Context(), storetest.MustName(t, "a"),
		manifest.Image{Layers: []manifest.Layer{l}}); !errors.Is(err, manifest.ErrBusy) ||
		!strings.Contains(err.Error(), "index.lock") {
		t.Errorf("error %v", err)
	}
}

// Resolve succeeds even if the model was replaced and its old blobs collected after it read the index.
func TestResolveWhileReplacing(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 25 {
			for name, text := range map[string]string{"a": fmt.Sprint(i), "b": "b"} {
				if err := storetest.CreateModel(t.Context(), s, name, text); err != nil {
					t.Error(err)
				}
			}
			if err := collect.Remove(t.Context(), s, manifest.Name{Path: "b"}); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if _, err := s.Resolve(t.Context(), manifest.Name{Path: "a"}); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
