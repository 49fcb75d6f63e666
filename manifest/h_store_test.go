package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	Clock(func() time.Time { return noon })(s)
	Waits(100*time.Millisecond, time.Minute)(s)
	return s
}

// putBlob stores text as a tensor named name.
func putBlob(t *testing.T, s *Store, name, text string) Layer {
	t.Helper()
	d, n, err := s.PutBytes(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Layer{Kind: KindTensor, Name: name, MediaType: modelspec.MediaTypeModelWeightRaw, Digest: d, Size: n}
}

// putModel stores a model with one tensor per text.
func putModel(t *testing.T, s *Store, name string, texts ...string) digest.Digest {
	t.Helper()
	img := Image{Config: Config{ModelType: "llama"}}
	for i, text := range texts {
		img.Layers = append(img.Layers, putBlob(t, s, string(rune('a'+i)), text))
	}
	d, err := s.Put(t.Context(), mustName(t, name), img)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// names returns the names of the store's models.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, m := range list {
		got = append(got, m.Name.String())
	}
	return got
}

// files returns the names of the files in a folder of the store.
func files(t *testing.T, s *Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(s.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	return got
}

func hasBlob(s *Store, text string) bool {
	_, err := os.Stat(s.BlobPath(digest.FromString(text)))
	return err == nil
}

// checkStore checks that all names resolve, all blobs match their digests, and the layout conforms to image-spec
// v1.1.1.
func checkStore(t *testing.T, s *Store) {
	t.Helper()
	var layout ocispec.ImageLayout
	b, err := os.ReadFile(s.path("oci-layout"))
	if err != nil {
		t.Fatal(err)
	}
	strictly(t, b, &layout)
	if layout.Version != "1.0.0" {
		t.Errorf("layout version %q", layout.Version)
	}
	var idx ocispec.Index
	if b, err = os.ReadFile(s.path("index.json")); err != nil {
		t.Fatal(err)
	}
	strictly(t, b, &idx)
	if idx.SchemaVersion != 2 || idx.MediaType != "application/vnd.oci.image.index.v1+json" || idx.Manifests == nil {
		t.Errorf("index %s", b)
	}
	for _, d := range idx.Manifests {
		m, err := s.ReadBlob(d.Digest, MaxManifestSize)
		if err != nil || int64(len(m)) != d.Size {
			t.Errorf("entry %s of size %d: %d bytes, %v", d.Digest, d.Size, len(m), err)
		}
	}
	for _, name := range files(t, s, "blobs/sha256") {
		path := s.path("blobs", "sha256", name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if digest.FromBytes(b).Encoded() != name {
			t.Errorf("blob %s has other content", name)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("blob %s has mode %v (%v)", name, info.Mode(), err)
		}
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		e, err := s.Resolve(t.Context(), m.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, l := range e.Image.Layers {
			if err := s.checkBlob(l.Digest, l.Size); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

const someDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

func mustName(t *testing.T, s string) Name {
	t.Helper()
	n, err := ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustEncode(t *testing.T, img Image) (manifest, config []byte) {
	t.Helper()
	manifest, config, err := EncodeModelPack(img)
	if err != nil {
		t.Fatal(err)
	}
	return manifest, config
}

func strictly(t *testing.T, b []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", clip(string(b)), err)
	}
}

func remove(t *testing.T, s *Store, name string) {
	t.Helper()
	if err := s.Remove(t.Context(), mustName(t, name)); err != nil {
		t.Fatal(err)
	}
}

func wantBlobs(t *testing.T, s *Store, want map[string]bool) {
	t.Helper()
	for text, there := range want {
		if hasBlob(s, text) != there {
			t.Errorf("blob %q is there: %v, want %v", text, !there, there)
		}
	}
}

// putEntry adds an index entry as another tool would.
func putEntry(t *testing.T, s *Store, ref, mediaType, body string) digest.Digest {
	t.Helper()
	d, n, err := s.PutBytes(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: n}
	if ref != "" {
		desc.Annotations = map[string]string{ocispec.AnnotationRefName: ref}
	}
	if err := s.updateIndex(t.Context(), func(idx *ocispec.Index) error {
		idx.Manifests = append(idx.Manifests, desc)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

func artifact(t *testing.T, s *Store, layer string, subject digest.Digest) string {
	t.Helper()
	l := putBlob(t, s, "x", layer)
	body := fmt.Sprintf(`{"schemaVersion":2,"layers":[{"digest":"%s","size":%d}]`, l.Digest, l.Size)
	if subject != "" {
		body += fmt.Sprintf(`,"subject":{"digest":"%s"}`, subject)
	}
	return body + "}"
}

func prune(t *testing.T, s *Store, o PruneOptions) PruneReport {
	t.Helper()
	r, err := s.Prune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leave writes a file of the given age to ingest/.
func leave(t *testing.T, s *Store, name, text string, age time.Duration) {
	t.Helper()
	path := s.path(ingestDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	when := s.Now().Add(-age)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

func fsck(t *testing.T, s *Store, o FsckOptions) FsckReport {
	t.Helper()
	r, err := s.Fsck(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// problemLines describes each problem in a line: kind, path or digest, affected models, and whether it is fixed.
func problemLines(r FsckReport) []string {
	got := []string{}
	for _, p := range r.Problems {
		line := string(p.Kind) + " " + p.Path
		if p.Digest != "" {
			line = string(p.Kind) + " " + string(p.Digest)
		}
		if len(p.Models) > 0 {
			line += " breaks " + strings.Join(p.Models, ", ")
		}
		if p.Fixed {
			line += " fixed"
		}
		got = append(got, line)
	}
	return got
}

func wantProblems(t *testing.T, r FsckReport, want ...string) {
	t.Helper()
	if got := problemLines(r); !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
