package store_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func newBlob(t *testing.T, s *store.Store) *store.BlobWriter {
	t.Helper()
	w, err := s.NewBlob(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestBlobWriter(t *testing.T) {
	s := storetest.NewStore(t)
	w := newBlob(t, s)
	defer w.Abort()
	write(t, w, "hello ")
	write(t, w, "world")
	want := digest.FromString("hello world")
	if storetest.HasBlob(s, "hello world") {
		t.Error("the blob is visible before Commit")
	}
	d, n, err := w.Commit()
	if err != nil || d != want || n != 11 {
		t.Fatalf("Commit = %s, %d, %v", d, n, err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Commit: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Commit: %v", err)
	}
	info, err := os.Stat(s.BlobPath(d))
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	f, err := s.OpenBlob(d)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "hello world" {
		t.Errorf("read %q, %v", b, err)
	}

	again := newBlob(t, s)
	write(t, again, "hello world")
	if d, n, err := again.Commit(); err != nil || d != want || n != 11 {
		t.Errorf("Commit of a blob that exists = %s, %d, %v", d, n, err)
	}
	if now, err := os.Stat(s.BlobPath(d)); err != nil || !os.SameFile(info, now) {
		t.Errorf("the blob that existed was replaced (%v)", err)
	}
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("files left in ingest: %v", got)
	}
}

func TestBlobWriterAbort(t *testing.T) {
	s := storetest.NewStore(t)
	w := newBlob(t, s)
	write(t, w, "x")
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("second Abort: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Commit after Abort: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.NewBlob(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, "x")
	cancel()
	if _, err := w.Write([]byte("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write after cancel: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit after cancel: %v", err)
	}
	if _, err := s.NewBlob(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("NewBlob after cancel: %v", err)
	}
	if storetest.HasBlob(s, "x") || len(storetest.Files(t, s, "ingest")) > 0 {
		t.Errorf("left behind: %v %v", storetest.Files(t, s, "blobs/sha256"), storetest.Files(t, s, "ingest"))
	}
}

// The next writer of a blob replaces a damaged file of the wrong size.
func TestCommitReplacesTruncatedBlob(t *testing.T) {
	s := storetest.NewStore(t)
	d := digest.FromString("hello")
	if err := os.WriteFile(s.BlobPath(d), []byte("he"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutBytes(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if b, err := s.ReadBlob(d, 10); err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestCommitFailureLeavesNothing(t *testing.T) {
	s := storetest.NewStore(t)
	w := newBlob(t, s)
	write(t, w, "x")
	if err := os.Remove(s.Path("blobs", "sha256")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path("blobs", "sha256"), nil, 0o644); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	if _, _, err := w.Commit(); err == nil {
		t.Error("Commit succeeded")
	}
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("files left in ingest: %v", got)
	}
}

func TestReadBlob(t *testing.T) {
	s := storetest.NewStore(t)
	l := storetest.PutBlob(t, s, "w", "hello")
	if b, err := s.ReadBlob(l.Digest, 5); err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v", b, err)
	}
	if _, err := s.ReadBlob(l.Digest, 4); !errors.Is(err, manifest.ErrTooLarge) ||
		!strings.Contains(err.Error(), string(l.Digest)) {
		t.Errorf("limit: %v", err)
	}
	missing := digest.FromString("nowhere")
	for _, read := range []func(digest.Digest) error{
		func(d digest.Digest) error { _, err := s.ReadBlob(d, 10); return err },
		func(d digest.Digest) error { _, err := s.OpenBlob(d); return err },
	} {
		if err := read(missing); !errors.Is(err, manifest.ErrBlobMissing) || !strings.Contains(err.Error(), string(missing)) {
			t.Errorf("missing: %v", err)
		}
		for _, bad := range []digest.Digest{"", "sha256:..", "sha256:../../index.json",
			"md5:d41d8cd98f00b204e9800998ecf8427e"} {
			if err := read(bad); !errors.Is(err, manifest.ErrBlobMissing) {
				t.Errorf("%q: %v", bad, err)
			}
			if p := s.BlobPath(bad); p != "" {
				t.Errorf("BlobPath(%q) = %q", bad, p)
			}
		}
	}
	os.Remove(s.BlobPath(l.Digest))
	if err := os.WriteFile(s.BlobPath(l.Digest), []byte("hallo"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadBlob(l.Digest, 5); !errors.Is(err, manifest.ErrCorrupt) ||
		!strings.Contains(err.Error(), string(digest.FromString("hallo"))) {
		t.Errorf("altered: %v", err)
	}
}
