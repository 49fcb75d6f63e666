package store_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// rot changes a byte of a blob and keeps its size, mode and time of modification, as a bad disk or an editor does.
func rot(t *testing.T, s *store.Store, text string) {
	t.Helper()
	path := s.BlobPath(digest.FromString(text))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for time.Since(info.ModTime()) < 20*time.Millisecond { // the system's clock has a step
		time.Sleep(time.Millisecond)
	}
	b := []byte(text)
	b[len(b)/2] ^= 1
	for _, err := range []error{os.Chmod(path, 0o644), os.WriteFile(path, b, 0o644), os.Chmod(path, 0o444),
		os.Chtimes(path, info.ModTime(), info.ModTime())} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func described(text string) ocispec.Descriptor {
	return ocispec.Descriptor{Digest: digest.FromString(text), Size: int64(len(text))}
}

// A blob that was written or read by its digest is not hashed again, also by another process, until it changes.
func TestVerifyBlobs(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "weights", "others")
	all := []ocispec.Descriptor{described("weights"), described("others")}
	again := func() *store.Store {
		s, err := store.Open(s.Root())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, s := range []*store.Store{s, again()} {
		if !s.IsVerified(all[0].Digest) || !s.IsVerified(all[1].Digest) || s.VerifyBlobs(t.Context(), all...) != nil {
			t.Error("what was just written is not verified")
		}
	}
	rot(t, s, "weights")
	for _, s := range []*store.Store{s, again()} {
		if err := s.VerifyBlobs(t.Context(), all...); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("a changed blob: %v", err)
		}
		if err := s.VerifyBlobs(t.Context(), all[1]); err != nil {
			t.Error(err)
		}
	}
	if err := s.VerifyBlobs(t.Context(), described("absent")); err != nil {
		t.Errorf("an absent blob: %v", err)
	}
	short := all[1]
	short.Size--
	if err := s.VerifyBlobs(t.Context(), short); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("another size: %v", err)
	}
	// Storing the bytes again replaces those that may be bad.
	if _, _, err := s.PutBytes(t.Context(), []byte("weights")); err != nil {
		t.Fatal(err)
	}
	if err := s.VerifyBlobs(t.Context(), all...); err != nil {
		t.Errorf("stored again: %v", err)
	}
}

// A check notes what it has read, unless it was written so lately that a change may have the same time.
func TestHashNotes(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "weights")
	d := described("weights")
	if err := os.Remove(s.Path(store.VerifiedFile)); err != nil {
		t.Fatal(err)
	}
	if err := s.VerifyBlobs(t.Context(), d); err != nil || s.IsVerified(d.Digest) {
		t.Errorf("a blob that was just written: %v", err)
	}
	time.Sleep(2100 * time.Millisecond) // its last change, which cannot be set
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
	if !s.IsVerified(d.Digest) {
		t.Error("fsck does not note what it has read")
	}
	for name, change := range map[string]func(path string) error{
		"touched": func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) },
		"linked":  func(path string) error { return os.Link(path, t.TempDir()+"/link") },
		"copied": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, b, 0o444))
		},
	} {
		if err := change(s.BlobPath(d.Digest)); err != nil {
			t.Fatal(err)
		}
		if s.IsVerified(d.Digest) {
			t.Errorf("%s, and the note holds", name)
		}
		s.NoteWritten(d.Digest)
		if !s.IsVerified(d.Digest) {
			t.Errorf("%s, and noted again", name)
		}
	}
}

// Notes that are damaged are none, and a collection drops those of blobs that are gone.
func TestNotesFile(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "weights")
	path, d := s.Path(store.VerifiedFile), digest.FromString("weights")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty": "", "zeros": string(make([]byte, len(text))), "cut off": string(text[:97]),
		"in upper case": "A" + string(text), "one line": string(text[:len(text)-1]) + " ",
	} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		other, err := store.Open(s.Root())
		if err != nil {
			t.Fatal(err)
		}
		if other.IsVerified(d) && name != "one line" && name != "in upper case" {
			t.Errorf("%s: the notes hold", name)
		}
		if err := other.VerifyBlobs(t.Context(), described("weights")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		storetest.PutBlob(t, s, "x", string(rune('a'+i%26))+string(rune(0x100+i)))
	}
	before, _ := os.Stat(path)
	storetest.Prune(t, s, collect.PruneOptions{})
	after, err := os.Stat(path)
	if err != nil || after.Size() >= before.Size()/10 || !s.IsVerified(d) {
		t.Errorf("the notes of %d bytes shrink to %d, %v", before.Size(), after.Size(), err)
	}
}

// Copy gives a damaged model no second name.
func TestCopyVerifies(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "weights")
	a, b := storetest.MustName(t, "a"), storetest.MustName(t, "b")
	if _, err := s.Copy(t.Context(), a, b, ""); err != nil {
		t.Fatal(err)
	}
	rot(t, s, "weights")
	for _, format := range []string{"", manifest.FormatOllama} {
		if _, err := s.Copy(t.Context(), a, storetest.MustName(t, "c"), format); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("format %q: %v", format, err)
		}
	}
}

// What a load pays for a model of 400 blobs that were verified, in a store of 10,000: reading the notes, and a look at
// each blob.
func BenchmarkVerified(b *testing.B) {
	root := b.TempDir() + "/store"
	s, err := store.Open(root)
	if err != nil {
		b.Fatal(err)
	}
	var blobs []ocispec.Descriptor
	for i := range 10000 {
		text := fmt.Sprint("blob ", i)
		if _, _, err := s.PutBytes(b.Context(), []byte(text)); err != nil {
			b.Fatal(err)
		}
		if i < 400 {
			blobs = append(blobs, described(text))
		}
	}
	for b.Loop() {
		if s, err = store.Open(root); err != nil {
			b.Fatal(err)
		}
		if err := s.VerifyBlobs(b.Context(), blobs...); err != nil {
			b.Fatal(err)
		}
	}
}
