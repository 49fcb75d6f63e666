package ingest_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func upload(t *testing.T, s *store.Store, text string) digest.Digest {
	t.Helper()
	d := digest.FromString(text)
	if err := ingest.PutUpload(t.Context(), s, d, strings.NewReader(text), ingest.UploadOptions{}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestUploads(t *testing.T) {
	s := storetest.NewStore(t)
	now := time.Now()
	store.Clock(func() time.Time { return now })(s)
	storetest.PutModel(t, s, "a", "a blob")
	one, two, blob := upload(t, s, "one"), upload(t, s, ""), digest.FromString("a blob")
	for d, want := range map[digest.Digest]bool{one: true, two: true, blob: true, digest.FromString("none"): false,
		"sha256:../x": false, "": false} {
		if got := ingest.HasUpload(s, d); got != want {
			t.Errorf("HasUpload(%q) = %v", d, got)
		}
	}
	dir, remove, err := ingest.Folder(s, map[string]digest.Digest{"config.json": one, "empty": two,
		"model.safetensors": blob})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"config.json": "one", "empty": "", "model.safetensors": "a blob"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	remove()
	storetest.WantBlobs(t, s, map[string]bool{"a blob": true})

	// Uploads are kept for two weeks, used ones for an hour. HasUpload extends the life of an upload.
	storetest.Prune(t, s, collect.PruneOptions{})
	ingest.UsedUploads(s, one, two, blob, "no digest")
	now = now.Add(ingest.UsedAge / 2)
	storetest.Prune(t, s, collect.PruneOptions{})
	if !ingest.HasUpload(s, two) {
		t.Error("a used upload was removed immediately")
	}
	now = now.Add(ingest.UsedAge)
	upload(t, s, "three")
	if ingest.HasUpload(s, one) || !ingest.HasUpload(s, two) || !ingest.HasUpload(s, blob) {
		t.Errorf("an hour later: %v, %v, %v", ingest.HasUpload(s, one), ingest.HasUpload(s, two), ingest.HasUpload(s, blob))
	}
	if r := storetest.Prune(t, s, collect.PruneOptions{DryRun: true}); len(r.Items) > 0 {
		t.Errorf("would prune %+v", r)
	}
	if r := storetest.Prune(t, s, collect.PruneOptions{Unfinished: true}); len(r.Items) != 2 ||
		r.Items[0].Kind != collect.PrunedRun ||
		r.Bytes != int64(len("three")) {
		t.Errorf("pruned %+v", r)
	}
	storetest.CheckTidy(t, s)
}

func TestBadUploads(t *testing.T) {
	s := storetest.NewStore(t)
	var mismatch *ingest.MismatchError
	err := ingest.PutUpload(t.Context(), s, digest.FromString("a"), strings.NewReader("b"), ingest.UploadOptions{})
	if !errors.As(err, &mismatch) || !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("other content: %v", err)
	}
	cut := io.MultiReader(strings.NewReader("a"), iotest.ErrReader(io.ErrUnexpectedEOF))
	err = ingest.PutUpload(t.Context(), s, digest.FromString("a"), cut, ingest.UploadOptions{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated: %v", err)
	}
	if err := ingest.PutUpload(t.Context(), s, "sha256:../../x", strings.NewReader(""),
		ingest.UploadOptions{}); err == nil {
		t.Error("a path was accepted as a digest")
	}
	a := upload(t, s, "a")
	for _, name := range []string{"", ".", "..", "a/b", "/a", "../a"} {
		if dir, _, err := ingest.Folder(s, map[string]digest.Digest{name: a}); err == nil {
			t.Errorf("name %q: %s", name, dir)
		}
	}
	if _, _, err := ingest.Folder(s,
		map[string]digest.Digest{"b": digest.FromString("b")}); !errors.Is(err, manifest.ErrBlobMissing) {
		t.Errorf("no such file: %v", err)
	}
	if got := storetest.Files(t, s, "ingest"); len(got) != 1 {
		t.Errorf("left %v", got)
	}

	// A collection removes the folder of a killed create, but not the uploads.
	if _, _, err := ingest.Folder(s, map[string]digest.Digest{"a": a}); err != nil {
		t.Fatal(err)
	}
	storetest.Prune(t, s, collect.PruneOptions{})
	if got := storetest.Files(t, s, "ingest"); len(got) != 1 || !ingest.HasUpload(s, a) {
		t.Errorf("left %v", got)
	}
}
