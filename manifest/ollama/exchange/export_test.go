package exchange

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func TestExport(t *testing.T) {
	o, s := newOllama(t), storetest.NewStore(t)
	img, b := storetest.OllamaImage()
	for _, text := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := s.Put(t.Context(), storetest.MustName(t, "m"), img)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "m"))
	if err != nil {
		t.Fatal(err)
	}
	old := o.blob("norm") // already present, unreferenced and a day old
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(o.blobPath(old), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	o.write(o.blobPath(digest.FromString("draft norm")), "cut") // truncated
	var done, total int64
	x, err := o.Export(t.Context(), s, e, ollamaName(t, "me/m"),
		Options{Progress: func(d, t int64) { done, total = d, t }})
	if err != nil {
		t.Fatal(err)
	}
	if x.Present != 4 || done != total || x.Present+x.Linked+x.Cloned+x.Copied != total {
		t.Errorf("report %+v, progress %d of %d", x, done, total)
	}
	manifestBytes, err := os.ReadFile(filepath.Join(o.root, "manifests/registry.ollama.ai/me/m/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(manifestBytes) != x.Digest ||
		!bytes.Contains(manifestBytes, []byte(`"name":"model.norm.weight"`)) {
		t.Errorf("manifest %s", manifestBytes)
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range blobs {
		info, err := os.Stat(o.blobPath(d.Digest))
		if err != nil || info.Size() != d.Size || info.Mode().Perm()&0o444 != 0o444 ||
			time.Since(info.ModTime()) > time.Minute {
			t.Errorf("blob %s: %v, %v", d.Digest, info, err)
		}
		text, err := os.ReadFile(o.blobPath(d.Digest))
		if err != nil || digest.FromBytes(text) != d.Digest {
			t.Errorf("blob %s: %q, %v", d.Digest, text, err)
		}
	}
	if got := o.partials(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}

	// Importing the model into another store links the same blobs, and yields the same digest.
	back := storetest.NewStore(t)
	y, err := o.Import(t.Context(), ollamaName(t, "me/m"), back, storetest.MustName(t, "m"),
		Options{Format: manifest.FormatModelPack})
	if err != nil {
		t.Fatal(err)
	}
	if y.Digest != want {
		t.Errorf("digest %s, want %s", y.Digest, want)
	}
	if y.Linked != x.Linked || x.Linked == 0 {
		t.Errorf("linked %d bytes out and %d back", x.Linked, y.Linked)
	}
	storetest.CheckTidy(t, back)
	// A second export copies nothing.
	z, err := o.Export(t.Context(), s, e, ollamaName(t, "me/M"), Options{})
	if err != nil || z.Present != total {
		t.Errorf("%+v, %v", z, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(o.root, "manifests/registry.ollama.ai/me")); len(entries) != 1 {
		t.Errorf("a name in another case is stored separately: %v", entries)
	}
}

func TestCopy(t *testing.T) {
	s := storetest.NewStore(t)
	want := storetest.PutModel(t, s, "a", "one", "two")
	copied := func(from, to, format string) digest.Digest {
		t.Helper()
		d, err := s.Copy(t.Context(), storetest.MustName(t, from), storetest.MustName(t, to), format)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := copied("a", "host.example/deep/path/b:v1", ""); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	theirs := copied("a", "c", manifest.FormatOllama)
	if theirs == want {
		t.Error("the other encoding has the same digest")
	}
	if got := copied("c", "d", manifest.FormatOllama); got != theirs {
		t.Errorf("the same encoding: digest %s, want %s", got, theirs)
	}
	if got := copied("c", "e", manifest.FormatModelPack); got != want {
		t.Errorf("there and back: digest %s, want %s", got, want)
	}
	raw, err := s.ResolveRaw(t.Context(), storetest.MustName(t, "c"))
	if err != nil || raw.Descriptor.MediaType != manifest.DockerManifest ||
		raw.Descriptor.Annotations[manifest.AnnotationModelType] != "llama" {
		t.Errorf("%+v, %v", raw, err)
	}
	for _, name := range []string{"a", "host.example/deep/path/b:v1", "d", "e"} {
		storetest.Remove(t, s, name)
	}
	storetest.WantBlobs(t, s, map[string]bool{"one": true, "two": true})
	storetest.Remove(t, s, "c")
	storetest.WantBlobs(t, s, map[string]bool{"one": false, "two": false})
	storetest.CheckTidy(t, s)
}

// Copy copies manifests of unknown kinds unchanged, but cannot convert them. PutRaw rejects a damaged model manifest.
func TestCopyUnknown(t *testing.T) {
	s := storetest.NewStore(t)
	sbom := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"artifactType":"application/x-sbom","config":` +
		`{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + string(digest.FromString("{}")) +
		`","size":2},"layers":[]}`)
	if _, _, err := s.PutBytes(t.Context(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want, err := s.PutRaw(t.Context(), storetest.MustName(t, "sbom"), "application/x-other", sbom, store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Copy(t.Context(), storetest.MustName(t, "sbom"), storetest.MustName(t, "copy"), ""); err != nil ||
		got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if raw, err := s.ResolveRaw(t.Context(), storetest.MustName(t, "copy")); err != nil ||
		raw.Descriptor.MediaType != "application/vnd.oci.image.manifest.v1+json" {
		t.Errorf("%+v, %v: the manifest's own media type takes precedence", raw, err)
	}
	for _, format := range []string{manifest.FormatOllama, manifest.FormatModelPack} {
		_, err := s.Copy(t.Context(), storetest.MustName(t, "sbom"), storetest.MustName(t, "other"), format)
		if !errors.Is(err, manifest.ErrUnknownManifest) {
			t.Errorf("as %s: %v", format, err)
		}
	}
	img, b := storetest.OllamaImage()
	manifestBytes, config := storetest.MustEncodeOllama(t, img, b)
	for d := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(b[d])); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.PutBytes(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(manifestBytes, []byte(`"name":"config.json"`), []byte(`"name":"../config.json"`), 1)
	_, err = s.PutRaw(t.Context(), storetest.MustName(t, "bad"), "", damaged, store.PutOptions{})
	if !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("damaged: %v", err)
	}
	if got := storetest.Names(t, s); len(got) != 2 {
		t.Errorf("names %v", got)
	}
}
