package ingest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

var testKey = digest.FromString("a run")

func openIngest(t *testing.T, s *store.Store) *ingest.Staging {
	t.Helper()
	in, err := ingest.Open(t.Context(), s, testKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

func seal(t *testing.T, in *ingest.Staging, name, text string) digest.Digest {
	t.Helper()
	b, err := in.NewBlob(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	if _, err := b.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	d, n, err := b.Seal(t.Context())
	if err != nil || d != digest.FromString(text) || n != int64(len(text)) {
		t.Fatalf("%s: digest %s, %d bytes, %v", name, d, n, err)
	}
	return d
}

// A blob has its disk space before it is written, and no more bytes than are written.
func TestAllocate(t *testing.T) {
	in := openIngest(t, storetest.NewStore(t))
	b, err := in.NewBlob("a")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	if err := b.Allocate(4 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if d, n, err := b.Seal(t.Context()); err != nil || n != 4 || d != digest.FromString("text") {
		t.Errorf("%s, %d bytes, %v", d, n, err)
	}
	if err := b.Allocate(1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Seal: %v", err)
	}
}

func wantSealed(t *testing.T, in *ingest.Staging, name, text string, there bool) {
	t.Helper()
	d, n, ok := in.Lookup(name)
	if ok != there || ok && (d != digest.FromString(text) || n != int64(len(text))) {
		t.Errorf("%s: %s, %d bytes, %v, want %v", name, d, n, ok, there)
	}
}

func TestIngestResumes(t *testing.T) {
	s := storetest.NewStore(t)
	in := openIngest(t, s)
	seal(t, in, "a", "first")
	seal(t, in, "b", "second")
	seal(t, in, "c", "first") // the same content under another name
	partial, err := in.NewBlob("d")
	if err != nil {
		t.Fatal(err)
	}
	defer partial.Abort()
	if _, err := partial.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("in the store already: %v", got)
	}

	in = openIngest(t, s)
	wantSealed(t, in, "a", "first", true)
	wantSealed(t, in, "b", "second", true)
	wantSealed(t, in, "c", "first", true)
	wantSealed(t, in, "d", "", false)
	// Two blobs, the lock file and the journal.
	if got := len(storetest.Files(t, s, filepath.Join("ingest", filepath.Base(in.Dir())))); got != 4 {
		t.Errorf("%d files, want 4", got)
	}
	if err := in.Publish(); err != nil {
		t.Fatal(err)
	}
	storetest.WantBlobs(t, s, map[string]bool{"first": true, "second": true})
	if info, err := os.Stat(s.BlobPath(digest.FromString("first"))); err != nil || info.Mode().Perm()&0o222 != 0 {
		t.Errorf("%v, %v, want a read-only file", info, err)
	}
	in.Close()

	// As after a kill between Publish and Put.
	in = openIngest(t, s)
	wantSealed(t, in, "a", "first", true)
	if err := in.Publish(); err != nil {
		t.Fatal(err)
	}
	in.Remove()
	storetest.WantBlobs(t, s, map[string]bool{"first": true, "second": true})
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

func TestIngestWriteAhead(t *testing.T) {
	in := openIngest(t, storetest.NewStore(t))
	b, err := in.NewBlob("x")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	for _, step := range []struct {
		text string
		at   int64 // -1: Write
	}{{"head", -1}, {"EF", 8}, {"ab", -1}, {"GH", 10}, {"cd", -1}} {
		if step.at < 0 {
			_, err = b.Write([]byte(step.text))
		} else {
			_, err = b.WriteAt([]byte(step.text), step.at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.WriteAt([]byte("z"), 3); err == nil {
		t.Error("hashed bytes can be overwritten")
	}
	if d, n, err := b.Seal(t.Context()); err != nil || n != 12 || d != digest.FromString("headabcdEFGH") {
		t.Errorf("%s, %d bytes, %v", d, n, err)
	}
	if _, err := b.Write(nil); err == nil {
		t.Error("a sealed blob can be written")
	}
}

// A truncated or damaged journal loses only the blobs of the damaged lines.
func TestIngestDamagedJournal(t *testing.T) {
	s := storetest.NewStore(t)
	in := openIngest(t, s)
	seal(t, in, "a", "first")
	journal := in.Path(ingest.IngestJournal)
	whole := seal(t, in, "b", "second")
	in.Close()
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, append([]byte("\x00\xff{\n"), b[:len(b)-10]...), 0o644); err != nil {
		t.Fatal(err)
	}
	in = openIngest(t, s)
	wantSealed(t, in, "a", "first", true)
	wantSealed(t, in, "b", "", false)
	if _, err := os.Stat(in.Path(whole.Encoded())); err == nil {
		t.Error("a blob that is not in the journal was kept")
	}
	seal(t, in, "b", "second") // its line follows the torn one
	in.Close()
	in = openIngest(t, s)
	wantSealed(t, in, "b", "second", true)
}

func TestIngestNothingSealed(t *testing.T) {
	s := storetest.NewStore(t)
	openIngest(t, s).Close()
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("left %v", got)
	}
	if _, err := ingest.Open(t.Context(), s, "sha256:../x"); err == nil {
		t.Error("a bad key is accepted")
	}
}

// Collections keep the state of unfinished runs for [ingest.Age].
func TestIngestAndCollect(t *testing.T) {
	s := storetest.NewStore(t)
	now := time.Now()
	store.Clock(func() time.Time { return now })(s)
	in := openIngest(t, s)
	seal(t, in, "a", "published")
	if err := in.Publish(); err != nil {
		t.Fatal(err)
	}
	seal(t, in, "b", "staged")
	in.Close()
	storetest.PutModel(t, s, "m", "w")
	storetest.Remove(t, s, "m")
	storetest.WantBlobs(t, s, map[string]bool{"published": true, "w": false})
	in = openIngest(t, s)
	wantSealed(t, in, "a", "published", true)
	wantSealed(t, in, "b", "staged", true)
	in.Close()

	now = now.Add(ingest.Age + time.Hour)
	storetest.PutModel(t, s, "m", "w")
	storetest.Remove(t, s, "m")
	storetest.WantBlobs(t, s, map[string]bool{"published": false})
	if got := storetest.Files(t, s, "ingest"); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

// Two runs with the same key exclude each other. The second one gets a new folder if the first removes its own.
func TestIngestWaits(t *testing.T) {
	s := storetest.NewStore(t)
	first := openIngest(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ingest.Open(ctx, s, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	opened := make(chan *ingest.Staging)
	go func() {
		in, err := ingest.Open(t.Context(), s, testKey)
		if err != nil {
			t.Error(err)
		}
		opened <- in
	}()
	seal(t, first, "a", "x")
	first.Remove()
	second := <-opened
	if second == nil {
		return
	}
	wantSealed(t, second, "a", "", false)
	seal(t, second, "a", "x")
	second.Close()
	if got := storetest.Files(t, s, "ingest"); !slices.Equal(got, []string{ingest.IngestPrefix + testKey.Encoded()}) {
		t.Errorf("folders %v", got)
	}
}

// TestIngestHandOver lets runs use and remove the same folder in quick succession. The removal by one run must not
// affect the next.
func TestIngestHandOver(t *testing.T) {
	s := storetest.NewStore(t)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 150 {
				in, err := ingest.Open(t.Context(), s, testKey)
				if err != nil {
					return err
				}
				in.Close()
				x, err := ingest.OpenSession(s, testKey)
				if errors.Is(err, manifest.ErrBusy) {
					continue
				}
				if err != nil {
					return err
				}
				_, err = x.Read()
				if err == nil {
					err = x.Write([]byte("state"))
				}
				if err != nil {
					return err
				}
				x.Remove()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
