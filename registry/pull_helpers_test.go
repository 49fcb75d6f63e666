package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/fetch"
	rt "github.com/ingotml/ingot/registry/registrytest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// testTuning makes the blobs of these tests large ones.
var testTuning = fetch.Tuning{SingleBelow: 64 << 10, MinPart: 100_000, MaxPart: 100_000,
	Stall: 300 * time.Millisecond, Response: time.Second, Buffer: 16 << 10}

func newPullClient(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	c := newClient(t, change...)
	c.tune = testTuning
	return c
}

func newEmptyStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// image is an image on a peer.
type image struct {
	name   manifest.Name
	bytes  []byte
	digest digest.Digest
	blobs  [][]byte // config first
}

// serve stores an image with these files as layers on a peer, as team/model:latest.
func serve(t testing.TB, p *rt.Peer, files map[string][]byte) *image {
	t.Helper()
	img := &image{name: p.Name("team/model"), blobs: [][]byte{[]byte("{}")}}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: "application/vnd.example.config", Digest: digest.FromString("{}"), Size: 2}}
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		b := files[path]
		img.blobs = append(img.blobs, b)
		m.Layers = append(m.Layers, ocispec.Descriptor{
			MediaType: "application/vnd.example.file", Digest: digest.FromBytes(b), Size: int64(len(b)),
			Annotations: map[string]string{modelspec.AnnotationFilepath: path}})
	}
	for _, b := range img.blobs {
		p.PutBlob("team/model", b)
	}
	img.bytes, _ = json.MarshalIndent(m, "", "   ") // unlike any encoder of ours
	img.digest = p.PutManifest("team/model", "latest", ocispec.MediaTypeImageManifest, img.bytes)
	return img
}

// checkWhole fails the test unless a store has exactly this image, byte for byte.
func (img *image) checkWhole(t testing.TB, s *store.Store) {
	t.Helper()
	raw, err := s.ResolveRaw(context.Background(), img.name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw.Bytes, img.bytes) || raw.Descriptor.Digest != img.digest {
		t.Errorf("the manifest is %s, not %s", raw.Descriptor.Digest, img.digest)
	}
	want := map[string]bool{img.digest.Encoded(): true}
	for _, b := range img.blobs {
		want[digest.FromBytes(b).Encoded()] = true
		if got, err := s.ReadBlob(digest.FromBytes(b), 1<<30); err != nil || !bytes.Equal(got, b) {
			t.Errorf("blob of %d bytes: %d bytes, %v", len(b), len(got), err)
		}
	}
	if got := listing(t, s, "blobs/sha256"); len(got) != len(want) {
		t.Errorf("%d blobs, want %d: %v", len(got), len(want), got)
	}
	if got := listing(t, s, "ingest"); len(got) > 0 {
		t.Errorf("left in ingest: %v", got)
	}
}

// checkAbsent fails the test if a store has the image's name, or a blob that does not match its digest.
func (img *image) checkAbsent(t testing.TB, s *store.Store) {
	t.Helper()
	if _, err := s.ResolveRaw(context.Background(), img.name); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("the name is there: %v", err)
	}
	for _, name := range listing(t, s, "blobs/sha256") {
		if _, err := s.ReadBlob(digest.Digest("sha256:"+name), 1<<30); err != nil {
			t.Error(err)
		}
	}
}

func listing(t testing.TB, s *store.Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Root(), dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var testFiles = map[string][]byte{
	"config.json":                []byte(`{"model_type":"x"}`),
	"model-a.safetensors":        rt.Noise(7, 1_000_000),
	"model-b.safetensors":        rt.Noise(7, 40_000),
	"model-c.safetensors":        rt.Noise(7, 130_000),
	"draft/config.json":          []byte("a draft"),
	"model-draft.x.safetensors":  rt.Noise(7, 5_000),
	"tokenizer/vocabulary.json":  []byte("{ }"),
	"empty.txt":                  {},
	"same-as-config/config.json": []byte(`{"model_type":"x"}`), // a digest that two layers share
}
