package manifest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"
)

func upload(t *testing.T, s *Store, text string) digest.Digest {
	t.Helper()
	d := digest.FromString(text)
	if err := s.PutUpload(t.Context(), d, strings.NewReader(text), UploadOptions{}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestUploads(t *testing.T) {
	s := newStore(t)
	now := time.Now()
	Clock(func() time.Time { return now })(s)
	putModel(t, s, "a", "a blob")
	one, two, blob := upload(t, s, "one"), upload(t, s, ""), digest.FromString("a blob")
	for d, want := range map[digest.Digest]bool{one: true, two: true, blob: true, digest.FromString("none"): false,
		"sha256:../x": false, "": false} {
		if got := s.HasUpload(d); got != want {
			t.Errorf("HasUpload(%q) = %v", d, got)
		}
	}
	dir, remove, err := s.Folder(map[string]digest.Digest{"config.json": one, "empty": two, "model.safetensors": blob})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"config.json": "one", "empty": "", "model.safetensors": "a blob"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	remove()
	wantBlobs(t, s, map[string]bool{"a blob": true})

	// Uploads are kept for two weeks, used ones for an hour. HasUpload extends the life of an upload.
	prune(t, s, PruneOptions{})
	s.UsedUploads(one, two, blob, "no digest")
	now = now.Add(usedAge / 2)
	prune(t, s, PruneOptions{})
	if !s.HasUpload(two) {
		t.Error("a used upload was removed immediately")
	}
	now = now.Add(usedAge)
	upload(t, s, "three")
	if s.HasUpload(one) || !s.HasUpload(two) || !s.HasUpload(blob) {
		t.Errorf("an hour later: %v, %v, %v", s.HasUpload(one), s.HasUpload(two), s.HasUpload(blob))
	}
	if r := prune(t, s, PruneOptions{DryRun: true}); len(r.Items) > 0 {
		t.Errorf("would prune %+v", r)
	}
	if r := prune(t, s, PruneOptions{Unfinished: true}); len(r.Items) != 2 || r.Items[0].Kind != PrunedRun ||
		r.Bytes != int64(len("three")) {
		t.Errorf("pruned %+v", r)
	}
	checkTidy(t, s)
}

func TestBadUploads(t *testing.T) {
	s := newStore(t)
	var mismatch *MismatchError
	err := s.PutUpload(t.Context(), digest.FromString("a"), strings.NewReader("b"), UploadOptions{})
	if !errors.As(err, &mismatch) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("other content: %v", err)
	}
	cut := io.MultiReader(strings.NewReader("a"), iotest.ErrReader(io.ErrUnexpectedEOF))
	err = s.PutUpload(t.Context(), digest.FromString("a"), cut, UploadOptions{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated: %v", err)
	}
	if err := s.PutUpload(t.Context(), "sha256:../../x", strings.NewReader(""), UploadOptions{}); err == nil {
		t.Error("a path was accepted as a digest")
	}
	a := upload(t, s, "a")
	for _, name := range []string{"", ".", "..", "a/b", "/a", "../a"} {
		if dir, _, err := s.Folder(map[string]digest.Digest{name: a}); err == nil {
			t.Errorf("name %q: %s", name, dir)
		}
	}
	if _, _, err := s.Folder(map[string]digest.Digest{"b": digest.FromString("b")}); !errors.Is(err, ErrBlobMissing) {
		t.Errorf("no such file: %v", err)
	}
	if got := files(t, s, "ingest"); len(got) != 1 {
		t.Errorf("left %v", got)
	}

	// A collection removes the folder of a killed create, but not the uploads.
	if _, _, err := s.Folder(map[string]digest.Digest{"a": a}); err != nil {
		t.Fatal(err)
	}
	prune(t, s, PruneOptions{})
	if got := files(t, s, "ingest"); len(got) != 1 || !s.HasUpload(a) {
		t.Errorf("left %v", got)
	}
}
