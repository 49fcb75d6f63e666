package manifest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestRemoveCollects(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "shared", "only a")
	putModel(t, s, "b", "shared", "only b")
	remove(t, s, "a")
	wantBlobs(t, s, map[string]bool{"shared": true, "only a": false, "only b": true})
	if got := names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	checkStore(t, s)
	remove(t, s, "b")
	if got := files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
	if err := s.Remove(t.Context(), mustName(t, "b")); !errors.Is(err, ErrNotFound) {
		t.Errorf("second removal: %v", err)
	}
	checkStore(t, s)
}

func TestRemoveOneOfTwoNames(t *testing.T) {
	s := newStore(t)
	d := putModel(t, s, "a:1", "w")
	putModel(t, s, "a:2", "w")
	putModel(t, s, "b", "w")
	remove(t, s, "a:1")
	wantBlobs(t, s, map[string]bool{"w": true})
	checkStore(t, s)
	remove(t, s, "a@"+string(d)) // all tags of that path with this digest
	if got := names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	if err := s.Remove(t.Context(), mustName(t, "b@"+string(someDigest))); !errors.Is(err, ErrNotFound) {
		t.Errorf("other digest: %v", err)
	}
}

// A collection removes the blobs of a replaced model, but no files in ingest/ or blobs/ that it does not know.
func TestRemoveCollectsReplaced(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "old")
	putModel(t, s, "a", "new")
	putModel(t, s, "b", "b")
	if err := os.WriteFile(s.path("ingest", "partial"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Not a blob, so not written by this program.
	if err := os.WriteFile(s.path("blobs", "sha256", "README"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	remove(t, s, "b")
	wantBlobs(t, s, map[string]bool{"old": false, "new": true, "b": false})
	if got := files(t, s, "ingest"); !slices.Equal(got, []string{"partial"}) {
		t.Errorf("ingest contains %v", got)
	}
	if !slices.Contains(files(t, s, "blobs/sha256"), "README") {
		t.Error("a file that is not a blob was deleted")
	}
}

func TestCollectKeepsReferrers(t *testing.T) {
	s := newStore(t)
	signed := putModel(t, s, "signed", "w")
	putModel(t, s, "other", "o")
	// The referrer of a referrer comes first, to show that the order in the index is irrelevant.
	sigBody := artifact(t, s, "signature", signed)
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, artifact(t, s, "attestation", digest.FromString(sigBody)))
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, sigBody)
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, artifact(t, s, "standalone", ""))

	remove(t, s, "other")
	wantBlobs(t, s, map[string]bool{"w": true, "o": false, "signature": true, "attestation": true, "standalone": true,
		sigBody: true})
	remove(t, s, "signed")
	wantBlobs(t, s, map[string]bool{"w": false, "signature": false, "attestation": false, "standalone": true,
		sigBody: false})
	idx, err := s.readIndex()
	if err != nil {
		t.Fatal(err)
	}
	if len(idx.Manifests) != 1 {
		t.Errorf("the index still contains %+v", idx.Manifests)
	}
	checkStore(t, s)
}

// Indexes (multi-platform images) keep what their manifests refer to. Absent manifests are not an error.
func TestCollectFollowsIndexes(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "demo", "w")
	child := artifact(t, s, "layer", "")
	d, n, err := s.PutBytes(t.Context(), []byte(child))
	if err != nil {
		t.Fatal(err)
	}
	// A manifest that is also a layer of another one is still followed.
	putEntry(t, s, "asLayer", ocispec.MediaTypeImageManifest, fmt.Sprintf(`{"layers":[{"digest":"%s","size":%d}]}`, d, n))
	putEntry(t, s, "multi", ocispec.MediaTypeImageIndex, fmt.Sprintf(
		`{"schemaVersion":2,"manifests":[{"mediaType":"%s","digest":"%s","size":%d},{"mediaType":"%[1]s","digest":"%s",`+
			`"size":1}]}`,
		ocispec.MediaTypeImageManifest, d, n, someDigest))
	remove(t, s, "demo")
	wantBlobs(t, s, map[string]bool{"w": false, "layer": true, child: true})
	remove(t, s, "multi")
	wantBlobs(t, s, map[string]bool{"layer": false, child: true})
}

// Entries of unknown media types keep what they seem to refer to. Entries that are not manifests are kept themselves.
func TestCollectKeepsUnknownTypes(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "demo", "w")
	x := putBlob(t, s, "x", "blob")
	body := fmt.Sprintf(`{"mediaType":"application/x-other","blobs":[{"digest":"%s","size":%d}]}`, x.Digest, x.Size)
	large := strings.Repeat(" ", MaxManifestSize+1)
	for _, b := range []string{body, "<xml/>", large} {
		putEntry(t, s, "", "application/x-other", b)
	}
	remove(t, s, "demo")
	wantBlobs(t, s, map[string]bool{"w": false, "blob": true, body: true, "<xml/>": true, large: true})
}

// The blobs that a damaged model refers to are unknown, so nothing is deleted until the model is removed.
func TestCollectStopsAtDamage(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "a")
	d := putModel(t, s, "broken", "b")
	os.Remove(s.BlobPath(d))
	err := s.Remove(t.Context(), mustName(t, "a"))
	var kept *KeptError
	if !errors.As(err, &kept) || !errors.Is(err, ErrBlobsKept) || !errors.Is(err, ErrBlobMissing) ||
		!strings.Contains(err.Error(), "broken:latest") {
		t.Fatalf("error %v", err)
	}
	wantBlobs(t, s, map[string]bool{"a": true, "b": true})
	if got := names(t, s); !slices.Equal(got, []string{"broken:latest"}) {
		t.Errorf("names %v", got)
	}
	remove(t, s, "broken")
	if got := files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

func TestRemoveWhileWriting(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "a")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half := putBlob(t, s, "w", "not yet in a model")
	err = s.Remove(t.Context(), mustName(t, "a"))
	var busy *BusyError
	if !errors.Is(err, ErrBlobsKept) || !errors.As(err, &busy) {
		t.Fatalf("error %v", err)
	}
	if len(busy.Holders) != 1 || busy.Holders[0].PID != os.Getpid() ||
		!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("holders %v in %q", busy.Holders, err)
	}
	wantBlobs(t, s, map[string]bool{"a": true, "not yet in a model": true})
	if got := names(t, s); len(got) != 0 {
		t.Errorf("names %v", got)
	}
	if _, err := s.Put(t.Context(), mustName(t, "b"), Image{Layers: []Layer{half}}); err != nil {
		t.Fatal(err)
	}
	release()
	release()
	putModel(t, s, "c", "c")
	remove(t, s, "c")
	wantBlobs(t, s, map[string]bool{"a": false, "not yet in a model": true})
	if got := files(t, s, "holders"); len(got) > 0 {
		t.Errorf("notes left: %v", got)
	}
}

func TestLockWaitsForCollection(t *testing.T) {
	s := newStore(t)
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
	s := newStore(t)
	unlock, err := s.Locks().Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	l := putBlob(t, s, "w", "w")
	Waits(0, 0)(s)
	if _, err := s.Put(t.Context(), mustName(t, "a"), Image{Layers: []Layer{l}}); !errors.Is(err, ErrBusy) ||
		!strings.Contains(err.Error(), "index.lock") {
		t.Errorf("error %v", err)
	}
}

// Resolve succeeds even if the model was replaced and its old blobs collected after it read the index.
func TestResolveWhileReplacing(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 25 {
			for name, text := range map[string]string{"a": fmt.Sprint(i), "b": "b"} {
				if err := createModel(t.Context(), s, name, text); err != nil {
					t.Error(err)
				}
			}
			if err := s.Remove(t.Context(), Name{Path: "b"}); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if _, err := s.Resolve(t.Context(), Name{Path: "a"}); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
