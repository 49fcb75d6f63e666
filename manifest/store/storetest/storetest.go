package storetest

import (
	"bytes"
	"context"
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

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Noon is the time by the clock of [NewStore]'s stores.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// NewStore creates an empty store whose clock stands still and whose collections wait for a tenth of a second.
func NewStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	store.Clock(func() time.Time { return Noon })(s)
	store.Waits(100*time.Millisecond, time.Minute)(s)
	return s
}

// PutBlob stores text as a tensor named name.
func PutBlob(t *testing.T, s *store.Store, name, text string) manifest.Layer {
	t.Helper()
	d, n, err := s.PutBytes(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Layer{Kind: manifest.KindTensor, Name: name, MediaType: modelspec.MediaTypeModelWeightRaw, Digest: d,
		Size: n}
}

// PutModel stores a model with one tensor per text.
func PutModel(t *testing.T, s *store.Store, name string, texts ...string) digest.Digest {
	t.Helper()
	img := manifest.Image{Config: manifest.Config{ModelType: "llama"}}
	for i, text := range texts {
		img.Layers = append(img.Layers, PutBlob(t, s, string(rune('a'+i)), text))
	}
	d, err := s.Put(t.Context(), MustName(t, name), img)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Names returns the names of the store's models.
func Names(t *testing.T, s *store.Store) []string {
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

// Files returns the names of the files in a folder of the store.
func Files(t *testing.T, s *store.Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	return got
}

// HasBlob reports whether the store has a blob with this content.
func HasBlob(s *store.Store, text string) bool {
	_, err := os.Stat(s.BlobPath(digest.FromString(text)))
	return err == nil
}

// CheckStore checks that all names resolve, all blobs match their digests, and the layout conforms to image-spec
// v1.1.1.
func CheckStore(t *testing.T, s *store.Store) {
	t.Helper()
	var layout ocispec.ImageLayout
	b, err := os.ReadFile(s.Path("oci-layout"))
	if err != nil {
		t.Fatal(err)
	}
	Strictly(t, b, &layout)
	if layout.Version != "1.0.0" {
		t.Errorf("layout version %q", layout.Version)
	}
	var idx ocispec.Index
	if b, err = os.ReadFile(s.Path("index.json")); err != nil {
		t.Fatal(err)
	}
	Strictly(t, b, &idx)
	if idx.SchemaVersion != 2 || idx.MediaType != "application/vnd.oci.image.index.v1+json" || idx.Manifests == nil {
		t.Errorf("index %s", b)
	}
	for _, d := range idx.Manifests {
		m, err := s.ReadBlob(d.Digest, manifest.MaxManifestSize)
		if err != nil || int64(len(m)) != d.Size {
			t.Errorf("entry %s of size %d: %d bytes, %v", d.Digest, d.Size, len(m), err)
		}
	}
	for _, name := range Files(t, s, "blobs/sha256") {
		path := s.Path("blobs", "sha256", name)
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
			if err := s.CheckBlob(l.Digest, l.Size); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

// SomeDigest is the digest of no bytes.
const SomeDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

// MustName parses a name.
func MustName(t testing.TB, s string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// MustEncode encodes an image in the modelpack encoding.
func MustEncode(t *testing.T, img manifest.Image) (manifestBytes, config []byte) {
	t.Helper()
	manifestBytes, config, err := manifest.EncodeModelPack(img)
	if err != nil {
		t.Fatal(err)
	}
	return manifestBytes, config
}

// Strictly decodes JSON that must have no unknown members.
func Strictly(t *testing.T, b []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", manifest.Clip(string(b)), err)
	}
}

// Remove removes a name and collects garbage.
func Remove(t *testing.T, s *store.Store, name string) {
	t.Helper()
	if err := collect.Remove(t.Context(), s, MustName(t, name)); err != nil {
		t.Fatal(err)
	}
}

// WantBlobs checks which texts the store has as blobs.
func WantBlobs(t *testing.T, s *store.Store, want map[string]bool) {
	t.Helper()
	for text, there := range want {
		if HasBlob(s, text) != there {
			t.Errorf("blob %q is there: %v, want %v", text, !there, there)
		}
	}
}

// PutEntry adds an index entry as another tool would.
func PutEntry(t *testing.T, s *store.Store, ref, mediaType, body string) digest.Digest {
	t.Helper()
	d, n, err := s.PutBytes(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: n}
	if ref != "" {
		desc.Annotations = map[string]string{ocispec.AnnotationRefName: ref}
	}
	if err := s.UpdateIndex(t.Context(), func(idx *ocispec.Index) error {
		idx.Manifests = append(idx.Manifests, desc)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

// Artifact stores a layer and returns the manifest of an artifact with that layer and a subject.
func Artifact(t *testing.T, s *store.Store, layer string, subject digest.Digest) string {
	t.Helper()
	l := PutBlob(t, s, "x", layer)
	body := fmt.Sprintf(`{"schemaVersion":2,"layers":[{"digest":"%s","size":%d}]`, l.Digest, l.Size)
	if subject != "" {
		body += fmt.Sprintf(`,"subject":{"digest":"%s"}`, subject)
	}
	return body + "}"
}

// Prune prunes the store.
func Prune(t *testing.T, s *store.Store, o collect.PruneOptions) collect.PruneReport {
	t.Helper()
	r, err := collect.Prune(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Leave writes a file of the given age to ingest/.
func Leave(t *testing.T, s *store.Store, name, text string, age time.Duration) {
	t.Helper()
	path := s.Path(store.IngestDir, filepath.FromSlash(name))
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

// Fsck checks the store.
func Fsck(t *testing.T, s *store.Store, o fsck.Options) fsck.Report {
	t.Helper()
	r, err := fsck.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ProblemLines describes each problem in a line: kind, path or digest, affected models, and whether it is fixed.
func ProblemLines(r fsck.Report) []string {
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

// WantProblems checks a report's problems.
func WantProblems(t *testing.T, r fsck.Report, want ...string) {
	t.Helper()
	if got := ProblemLines(r); !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ListShared lists the models with the sizes that they share.
func ListShared(ctx context.Context, s *store.Store) ([]store.Summary, error) {
	l, err := s.Listing(ctx)
	if err == nil {
		err = collect.Share(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	return l.Models, nil
}
