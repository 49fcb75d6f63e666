package registrytest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// NewStore returns an empty store.
func NewStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// SmallManifest returns an image manifest with the empty config, no layers, and an annotation. The config need not
// exist.
func SmallManifest(note string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json",`+
		`"digest":%q,"size":2},"layers":[],"annotations":{"note":%q}}`, digest.FromString("{}"), note)
}

// Noise returns n pseudo-random bytes, the same for the same seed and n.
func Noise(seed, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

// PutModel stores a model under a local name with a random tensor of each size, and returns its name and digest. Models
// share tensors with the same index and size.
func PutModel(t testing.TB, s *store.Store, name string, sizes ...int) (manifest.Name, digest.Digest) {
	t.Helper()
	img := manifest.Image{Config: manifest.Config{ModelType: "llama", Format: "safetensors"}}
	for i, n := range sizes {
		d, size, err := s.PutBytes(t.Context(), Noise(i, n))
		if err != nil {
			t.Fatal(err)
		}
		img.Layers = append(img.Layers, manifest.Layer{Kind: manifest.KindTensor, Name: fmt.Sprintf("t%d",
			i), Digest: d, Size: size})
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Put(t.Context(), n, img)
	if err != nil {
		t.Fatal(err)
	}
	return n, d
}

// Attach stores an artifact with a text layer that refers to a manifest.
func Attach(t testing.TB, s *store.Store, subject digest.Digest, artifactType, text string) ocispec.Descriptor {
	t.Helper()
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	d, n, err := s.PutBytes(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	desc, err := s.Attach(t.Context(), manifest.Artifact{
		Type:    artifactType,
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: 2},
		Layers:  []ocispec.Descriptor{{MediaType: "text/plain", Digest: d, Size: n}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// Serve puts a model of the store into a peer's repository under a tag, as a push would, and returns its digest.
func (p *Peer) Serve(s *store.Store, name manifest.Name, repo, tag string) digest.Digest {
	p.T.Helper()
	raw, err := s.ResolveRaw(p.T.Context(), name)
	if err != nil {
		p.T.Fatal(err)
	}
	blobs, err := manifest.Blobs(raw.Bytes)
	if err != nil {
		p.T.Fatal(err)
	}
	for _, d := range blobs {
		b, err := s.ReadBlob(d.Digest, d.Size)
		if err != nil {
			p.T.Fatal(err)
		}
		p.PutBlob(repo, b)
	}
	return p.PutManifest(repo, tag, raw.Descriptor.MediaType, raw.Bytes)
}

// Check fails the test unless a repository has the whole model: its manifest under the tag and all blobs.
func (p *Peer) Check(repo, tag string, want digest.Digest) {
	p.T.Helper()
	b := p.Manifest(repo, tag)
	if got := digest.FromBytes(b); b == nil || got != want {
		p.T.Fatalf("%s:%s is %s, want %s", repo, tag, got, want)
	}
	blobs, err := manifest.Blobs(b)
	if err != nil {
		p.T.Fatal(err)
	}
	for _, d := range blobs {
		if got := p.Blob(repo, d.Digest); digest.FromBytes(got) != d.Digest || int64(len(got)) != d.Size {
			p.T.Errorf("%s: blob %s of %d bytes is missing or differs: %d bytes", repo, d.Digest, d.Size, len(got))
		}
	}
}
