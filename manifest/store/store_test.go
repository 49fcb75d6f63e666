package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/storetest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPutResolveList(t *testing.T) {
	s := storetest.NewStore(t)
	img := manifest.Image{Config: manifest.Config{ModelType: "llama", Params: 3},
		Layers: []manifest.Layer{storetest.PutBlob(t, s, "w", "weights"), storetest.PutBlob(t, s, "x", "more")}}
	name := storetest.MustName(t, "ghcr.io/me/Demo:1b")
	d, err := s.Put(t.Context(), name, img)
	if err != nil {
		t.Fatal(err)
	}
	manifestBytes, config := storetest.MustEncode(t, img)
	if d != digest.FromBytes(manifestBytes) {
		t.Errorf("Put returned %s, want the digest of the encoded manifest", d)
	}
	want := &store.Entry{Name: name, Digest: d, Format: manifest.FormatModelPack, Image: img, ManifestBytes: manifestBytes}
	for _, ask := range []string{"ghcr.io/me/Demo:1b", "ghcr.io/me/Demo:1b@" + string(d), "ghcr.io/me/Demo@" + string(d)} {
		got, err := s.Resolve(t.Context(), storetest.MustName(t, ask))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Resolve(%s) (-want +got):\n%s", ask, diff)
		}
		if n, d, err := s.Locate(t.Context(), storetest.MustName(t, ask)); err != nil || n != want.Name || d != want.Digest {
			t.Errorf("Locate(%s): %s, %s, %v", ask, n, d, err)
		}
	}
	storetest.PutModel(t, s, "another", "weights")
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Name.String() != "another:latest" {
		t.Fatalf("List = %+v", list)
	}
	wantSum := store.Summary{Name: name, Digest: d, Size: int64(len("weightsmore") + len(manifestBytes) + len(config)),
		ModelType: "llama", Modified: storetest.Noon}
	if diff := cmp.Diff(wantSum, list[1]); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("files left in ingest: %v", got)
	}
	storetest.CheckStore(t, s)
}

// Only the index contains dates and names, so an image has the same digest in every store.
func TestDigestIsOfContentAlone(t *testing.T) {
	a, b := storetest.NewStore(t), storetest.NewStore(t)
	store.Clock(func() time.Time { return storetest.Noon.Add(time.Hour) })(b)
	if x, y := storetest.PutModel(t, a, "one", "w"), storetest.PutModel(t, b, "h.io/two:t", "w"); x != y {
		t.Errorf("digests %s and %s", x, y)
	}
}

func TestPutReplaces(t *testing.T) {
	s := storetest.NewStore(t)
	old := storetest.PutModel(t, s, "demo", "old")
	storetest.PutModel(t, s, "other", "other")
	store.Clock(func() time.Time { return storetest.Noon.Add(time.Minute) })(s)
	now := storetest.PutModel(t, s, "demo", "new")
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Digest != now || !list[0].Modified.Equal(storetest.Noon.Add(time.Minute)) {
		t.Errorf("List = %+v", list)
	}
	if !storetest.HasBlob(s, "old") {
		t.Error("Put removed the old model's blob")
	}
	var notFound *index.NotFoundError
	if _, err := s.Resolve(t.Context(), storetest.MustName(t, "demo@"+string(old))); !errors.As(err, &notFound) {
		t.Errorf("old digest: %v", err)
	}
	storetest.CheckStore(t, s)
}

func TestPutErrors(t *testing.T) {
	s := storetest.NewStore(t)
	have := storetest.PutBlob(t, s, "w", "weights")
	missing, short := have, have
	missing.Digest, missing.Name = digest.FromString("nowhere"), "x"
	short.Size++
	short.Name = "y"
	tests := []struct {
		name string
		as   manifest.Name
		img  manifest.Image
		want error
		says string
	}{
		{"missing blob", manifest.Name{Path: "demo"}, manifest.Image{Layers: []manifest.Layer{have, missing}},
			manifest.ErrBlobMissing,
			"layer x: blob " + string(missing.Digest)},
		{"wrong size", manifest.Name{Path: "demo"}, manifest.Image{Layers: []manifest.Layer{short}}, manifest.ErrCorrupt,
			"layer y"},
		{"digest in name", manifest.Name{Path: "demo", Digest: storetest.SomeDigest},
			manifest.Image{Layers: []manifest.Layer{have}}, manifest.ErrInvalidName,
			"must not have a digest"},
		{"bad name", manifest.Name{Path: "de mo"}, manifest.Image{Layers: []manifest.Layer{have}}, manifest.ErrInvalidName,
			"de mo"},
		{"bad image", manifest.Name{Path: "demo"}, manifest.Image{}, manifest.ErrInvalidImage, "no layers"},
	}
	for _, tt := range tests {
		if _, err := s.Put(t.Context(), tt.as, tt.img); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v saying %q", tt.name, err, tt.want, tt.says)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(gone, manifest.Name{Path: "demo"},
		manifest.Image{Layers: []manifest.Layer{have}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := storetest.Names(t, s); len(got) != 0 {
		t.Errorf("failed puts left %v", got)
	}
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) != 1 {
		t.Errorf("failed puts left blobs: %v", got)
	}
	if d, err := s.Put(t.Context(), manifest.Name{Path: "demo"},
		manifest.Image{Layers: []manifest.Layer{have}}); err != nil || d == "" {
		t.Fatal(err)
	}
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"demo:latest"}) {
		t.Errorf("a name without a tag became %v", got)
	}
}

func TestNotFoundNamesNear(t *testing.T) {
	s := storetest.NewStore(t)
	for _, n := range []string{"Llama-3.2:1b", "llama-3.2:3b", "hub.io/me/llama-3.2:1b", "qwen3", "entirely/else"} {
		storetest.PutModel(t, s, n, "w")
	}
	tests := []struct {
		ask  string
		near []string
	}{
		{"llama-3.2", []string{"Llama-3.2:1b", "llama-3.2:3b", "hub.io/me/llama-3.2:1b"}},
		{"lama-3.2", []string{"Llama-3.2:1b", "llama-3.2:3b"}},
		{"qwen2:latest", []string{"qwen3:latest"}},
		{"qwe", []string{"qwen3:latest"}},
		{"llam", []string{"Llama-3.2:1b", "hub.io/me/llama-3.2:1b", "llama-3.2:3b"}},
		{"q", nil},
		{"zzzzzz", nil},
	}
	for _, tt := range tests {
		_, err := s.Resolve(t.Context(), storetest.MustName(t, tt.ask))
		var e *index.NotFoundError
		if !errors.As(err, &e) || !errors.Is(err, manifest.ErrNotFound) {
			t.Errorf("Resolve(%s): %v", tt.ask, err)
			continue
		}
		if diff := cmp.Diff(tt.near, e.Near); diff != "" {
			t.Errorf("near %s (-want +got):\n%s", tt.ask, diff)
		}
		if !strings.Contains(err.Error(), tt.ask) || len(tt.near) > 0 && !strings.Contains(err.Error(), tt.near[0]) {
			t.Errorf("message %q", err)
		}
	}
}

func TestResolveDamage(t *testing.T) {
	damage := func(change func(t *testing.T, s *store.Store, d digest.Digest)) error {
		s := storetest.NewStore(t)
		d := storetest.PutModel(t, s, "demo", "w")
		change(t, s, d)
		_, err := s.Resolve(t.Context(), storetest.MustName(t, "demo"))
		return err
	}
	overwrite := func(t *testing.T, path string, b []byte) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, b, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, s *store.Store, d digest.Digest)
		want   error
	}{
		{"manifest gone", func(t *testing.T, s *store.Store, d digest.Digest) { os.Remove(s.BlobPath(d)) },
			manifest.ErrBlobMissing},
		{"manifest altered", func(t *testing.T, s *store.Store,
			d digest.Digest) {
			overwrite(t, s.BlobPath(d), []byte("{}"))
		},
			manifest.ErrCorrupt},
		{"manifest huge", func(t *testing.T, s *store.Store, d digest.Digest) {
			overwrite(t, s.BlobPath(d), make([]byte, manifest.MaxManifestSize+1))
		}, manifest.ErrTooLarge},
		{"config gone", func(t *testing.T, s *store.Store, d digest.Digest) {
			for _, f := range storetest.Files(t, s, "blobs/sha256") {
				if f != d.Encoded() {
					os.Remove(s.Path("blobs", "sha256", f))
				}
			}
		}, manifest.ErrBlobMissing},
		{"index broken",
			func(t *testing.T, s *store.Store, _ digest.Digest) {
				overwrite(t, s.Path("index.json"), []byte(`{"schema`))
			},
			manifest.ErrIndex},
		{"index of other version",
			func(t *testing.T, s *store.Store, _ digest.Digest) {
				overwrite(t, s.Path("index.json"),
					[]byte(`{}`))
			}, manifest.ErrIndex},
		{"index gone", func(t *testing.T, s *store.Store, _ digest.Digest) { os.Remove(s.Path("index.json")) },
			manifest.ErrIndex},
	}
	for _, tt := range tests {
		if err := damage(tt.change); !errors.Is(err, tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// Entries written by other tools get a clear error, and are preserved by changes of the index.
func TestForeignEntries(t *testing.T) {
	s := storetest.NewStore(t)
	manifestBytes := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` +
		string(storetest.SomeDigest) + `","size":0},"layers":[]}`)
	d, n, err := s.PutBytes(t.Context(), manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	foreign := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: n,
		Annotations: map[string]string{ocispec.AnnotationRefName: "v1", "x": "y"},
		Platform:    &ocispec.Platform{OS: "linux", Architecture: "arm64"}}
	odd := foreign
	odd.Annotations = map[string]string{ocispec.AnnotationRefName: "not a name"}
	err = s.UpdateIndex(t.Context(), func(idx *ocispec.Index) error {
		*idx = ocispec.Index{Manifests: []ocispec.Descriptor{foreign, odd}, Annotations: map[string]string{"k": "v"}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.PutModel(t, s, "demo", "w")
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"demo:latest", "v1:latest"}) {
		t.Errorf("names %v", got)
	}
	var unknown *manifest.UnknownManifestError
	if _, err := s.Resolve(t.Context(), storetest.MustName(t, "v1")); !errors.As(err, &unknown) ||
		!errors.Is(err, manifest.ErrUnknownManifest) ||
		unknown.ConfigMediaType != ocispec.MediaTypeImageConfig {
		t.Errorf("Resolve(v1): %v", err)
	}
	idx, err := s.ReadIndex()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ocispec.Descriptor{foreign, odd}, idx.Manifests[:2]); diff != "" || idx.Annotations["k"] != "v" {
		t.Errorf("foreign entries changed (-want +got):\n%s", diff)
	}
}

// A reader that follows the image layout specification finds the model by its name.
func TestLayoutReadsByTheSpecification(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "h.io/a/demo:1b", "weights")
	read := func(path string, into any) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(s.Root(), filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var idx ocispec.Index
	read("index.json", &idx)
	if len(idx.Manifests) != 1 || idx.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "h.io/a/demo:1b" ||
		idx.Manifests[0].MediaType != "application/vnd.oci.image.manifest.v1+json" {
		t.Fatalf("index %+v", idx)
	}
	var m ocispec.Manifest
	read("blobs/sha256/"+idx.Manifests[0].Digest.Encoded(), &m)
	var config modelspec.Model
	read("blobs/sha256/"+m.Config.Digest.Encoded(), &config)
	b, err := os.ReadFile(filepath.Join(s.Root(), "blobs", "sha256", m.Layers[0].Digest.Encoded()))
	if err != nil || string(b) != "weights" {
		t.Errorf("layer %q, %v", b, err)
	}
}
