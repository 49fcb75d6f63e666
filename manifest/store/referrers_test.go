package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const reportType = "application/vnd.example.report"

// attach stores an artifact with one layer.
func attach(t *testing.T, s *store.Store, subject digest.Digest, artifactType, text string) ocispec.Descriptor {
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
		Type:        artifactType,
		Subject:     ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: 7},
		Layers:      []ocispec.Descriptor{{MediaType: "text/plain", Digest: d, Size: n}},
		Annotations: map[string]string{"about": text},
	})
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

func referrers(t *testing.T, s *store.Store, subject digest.Digest, artifactType string) []ocispec.Descriptor {
	t.Helper()
	list, err := s.Referrers(t.Context(), subject, artifactType)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEncodeArtifact(t *testing.T) {
	got, err := manifest.EncodeArtifact(manifest.Artifact{
		Type: reportType,
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("s"), Size: 3,
			Annotations: map[string]string{"of": "the index"}},
		Layers:      []ocispec.Descriptor{{MediaType: "text/plain", Digest: digest.FromString("l"), Size: 1}},
		Annotations: map[string]string{"k": "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"artifactType":"application/vnd.example.report",` +
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json",` +
		`"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},` +
		`"layers":[{"mediaType":"text/plain","digest":"` + string(digest.FromString("l")) + `","size":1}],` +
		`"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + string(digest.FromString("s")) +
		`","size":3},` +
		`"annotations":{"k":"v"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEncodeArtifactErrors(t *testing.T) {
	good := manifest.Artifact{
		Type:    reportType,
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("s"), Size: 3},
		Layers:  []ocispec.Descriptor{{MediaType: "text/plain", Digest: digest.FromString("l"), Size: 1}},
	}
	tests := map[string]func(*manifest.Artifact){
		"no type":            func(a *manifest.Artifact) { a.Type = "" },
		"type without slash": func(a *manifest.Artifact) { a.Type = "report" },
		"type with a space":  func(a *manifest.Artifact) { a.Type = "text/a b" },
		"no subject":         func(a *manifest.Artifact) { a.Subject = ocispec.Descriptor{} },
		"no layer":           func(a *manifest.Artifact) { a.Layers = nil },
		"layer type": func(a *manifest.Artifact) {
			a.Layers = []ocispec.Descriptor{{MediaType: "text/plain; charset=utf-8"}}
		},
	}
	for name, change := range tests {
		a := good
		change(&a)
		if _, err := manifest.EncodeArtifact(a); !errors.Is(err, manifest.ErrInvalidImage) {
			t.Errorf("%s: %v, want ErrInvalidImage", name, err)
		}
	}
	large := good
	large.Annotations = map[string]string{"k": strings.Repeat("x", manifest.MaxManifestSize)}
	if _, err := manifest.EncodeArtifact(large); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("large: %v, want ErrTooLarge", err)
	}
}

func TestReferrers(t *testing.T) {
	s := storetest.NewStore(t)
	a, b := storetest.PutModel(t, s, "a", "wa"), storetest.PutModel(t, s, "b", "wb")
	one := attach(t, s, a, reportType, "one")
	two := attach(t, s, a, "text/plain", "two")
	attach(t, s, b, reportType, "three")
	of := attach(t, s, one.Digest, reportType, "about one")
	if again := attach(t, s, a, reportType, "one"); again.Digest != one.Digest {
		t.Errorf("the same artifact again is %s, not %s", again.Digest, one.Digest)
	}
	if diff := cmp.Diff([]ocispec.Descriptor{one, two}, referrers(t, s, a, "")); diff != "" {
		t.Errorf("all of a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]ocispec.Descriptor{one}, referrers(t, s, a, reportType)); diff != "" {
		t.Errorf("reports of a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]ocispec.Descriptor{of}, referrers(t, s, one.Digest, "")); diff != "" {
		t.Errorf("of the first report (-want +got):\n%s", diff)
	}
	if one.ArtifactType != reportType || one.Annotations["about"] != "one" ||
		one.MediaType != ocispec.MediaTypeImageManifest {
		t.Errorf("descriptor %+v", one)
	}
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"a:latest", "b:latest"}) {
		t.Errorf("names %v: referrers must not be listed", got)
	}
	storetest.CheckStore(t, s)
	storetest.Remove(t, s, "a")
	storetest.WantBlobs(t, s, map[string]bool{"wa": false, "one": false, "two": false, "about one": false, "wb": true,
		"three": true})
	if left := referrers(t, s, a, ""); len(left) != 0 {
		t.Errorf("left of a: %v", left)
	}
	if left := referrers(t, s, b, ""); len(left) != 1 {
		t.Errorf("left of b: %v", left)
	}
	storetest.CheckStore(t, s)
}

// Other tools write entries without ingot's annotations, and manifests without an artifactType.
func TestForeignReferrers(t *testing.T) {
	s := storetest.NewStore(t)
	a := storetest.PutModel(t, s, "a", "w")
	body := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.example.config","digest":%q,`+
		`"size":2},"subject":{"digest":%q,"size":1}}`,
		digest.FromString("{}"), a)
	if _, _, err := s.PutBytes(t.Context(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	d := storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, body)
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, `{"schemaVersion":2}`)
	storetest.PutEntry(t, s, "", "application/octet-stream", "no manifest")
	got := referrers(t, s, a, "")
	if len(got) != 1 || got[0].Digest != d || got[0].ArtifactType != "application/vnd.example.config" {
		t.Errorf("got %+v", got)
	}
}

func TestPutReferrerErrors(t *testing.T) {
	s := storetest.NewStore(t)
	a := storetest.PutModel(t, s, "a", "w")
	subject := fmt.Sprintf(`"subject":{"mediaType":"x/y","digest":%q,"size":1}`, a)
	image := fmt.Sprintf(`"schemaVersion":2,"config":{"digest":%q,"size":2},`, digest.FromString("{}"))
	absent := fmt.Sprintf(`"layers":[{"digest":%q,"size":1}]`, digest.FromString("absent"))
	tests := []struct {
		name, body string
		want       error
	}{
		{"no JSON", "x", manifest.ErrInvalidManifest},
		{"no subject", `{"schemaVersion":2}`, manifest.ErrInvalidManifest},
		{"a subject without a valid digest", `{"subject":{"digest":"sha256:1"}}`, manifest.ErrInvalidManifest},
		{"a layer without a valid digest", `{` + image + subject + `,"layers":[{"digest":"x"}]}`,
			manifest.ErrInvalidManifest},
		{"a missing blob", `{` + image + subject + `,` + absent + `}`, manifest.ErrBlobMissing},
		{"a media type of another kind", `{"mediaType":"application/x-note",` + image + subject + `,"layers":[]}`,
			manifest.ErrInvalidManifest},
		{"too large", `{` + subject + strings.Repeat(" ", manifest.MaxManifestSize) + `}`, manifest.ErrTooLarge},
	}
	before := storetest.Files(t, s, "blobs/sha256")
	for _, tt := range tests {
		if _, err := s.PutReferrer(t.Context(), ocispec.MediaTypeImageManifest, []byte(tt.body)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if after := storetest.Files(t, s, "blobs/sha256"); !slices.Equal(before, after) {
		t.Errorf("blobs before %v, after %v", before, after)
	}
}

// Concurrently stored referrers of one subject are all kept.
func TestPutReferrerTogether(t *testing.T) {
	s := storetest.NewStore(t)
	a := storetest.PutModel(t, s, "a", "w")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { attach(t, s, a, reportType, fmt.Sprint("report ", i)) })
	}
	wg.Wait()
	if got := referrers(t, s, a, ""); len(got) != 8 {
		t.Errorf("%d referrers, want 8", len(got))
	}
	storetest.CheckStore(t, s)
}

func TestReferrerDescriptor(t *testing.T) {
	body, err := json.Marshal(map[string]any{"config": map[string]any{"mediaType": "a/config"},
		"annotations": map[string]string{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, body)
	want := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "a/config",
		Digest: digest.FromBytes(body),
		Size:   int64(len(body)), Annotations: map[string]string{"k": "v"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestCheckBlobs(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "one", "three")
	raw, err := s.ResolveRaw(t.Context(), storetest.MustName(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := fsck.CheckBlobs(t.Context(), s, raw)
	if err != nil || got.Blobs != 3 || got.Absent != 0 || got.Bytes < 8 {
		t.Errorf("%+v, %v, want 3 blobs", got, err)
	}
	damageBlob(t, s, "three", "THREE")
	if _, err := fsck.CheckBlobs(t.Context(), s, raw); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("damaged: %v, want ErrCorrupt", err)
	}
	damageBlob(t, s, "three", "longer than it was")
	if _, err := fsck.CheckBlobs(t.Context(), s, raw); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("longer: %v, want ErrCorrupt", err)
	}
	removeBlob(t, s, "three")
	if _, err := fsck.CheckBlobs(t.Context(), s, raw); !errors.Is(err, manifest.ErrBlobMissing) {
		t.Errorf("absent: %v, want ErrBlobMissing", err)
	}
	raw.Descriptor.Annotations[index.AnnotationPartial] = "1"
	if got, err := fsck.CheckBlobs(t.Context(), s, raw); err != nil || got.Blobs != 2 || got.Absent != 1 {
		t.Errorf("partial: %+v, %v, want 2 blobs and 1 absent", got, err)
	}
}

// damageBlob replaces the content of a blob.
func damageBlob(t *testing.T, s *store.Store, text, with string) {
	t.Helper()
	removeBlob(t, s, text)
	if err := os.WriteFile(s.BlobPath(digest.FromString(text)), []byte(with), 0o444); err != nil {
		t.Fatal(err)
	}
}

func removeBlob(t *testing.T, s *store.Store, text string) {
	t.Helper()
	if err := os.Remove(s.BlobPath(digest.FromString(text))); err != nil {
		t.Fatal(err)
	}
}
