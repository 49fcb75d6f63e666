package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func init() {
	// A client that sends "half" and then stalls until the process is killed.
	storetest.Jobs["send"] = func(ctx context.Context, s *store.Store, _ string) error {
		r, w := io.Pipe()
		go func() {
			io.WriteString(w, "half")
			io.WriteString(w, "x") // read after the first bytes are written to disk
			fmt.Println("ready")
		}()
		return ingest.PutUpload(ctx, s, digest.FromString("half and more"), r, ingest.UploadOptions{})
	}
}

// slowUpload is an upload of which the client has sent a part.
type slowUpload struct {
	client *io.PipeWriter
	result chan error
}

// beginUpload starts to upload a text and returns when the first half has been read.
func beginUpload(t *testing.T, s *store.Store, text string, o ingest.UploadOptions) slowUpload {
	t.Helper()
	r, w := io.Pipe()
	u := slowUpload{w, make(chan error, 1)}
	go func() {
		err := ingest.PutUpload(t.Context(), s, digest.FromString(text), r, o)
		r.CloseWithError(err)
		u.result <- err
	}()
	if _, err := io.WriteString(w, text[:len(text)/2]); err != nil {
		t.Fatal(err)
	}
	return u
}

// end sends the rest and returns the result of PutUpload.
func (u slowUpload) end(rest string) error {
	_, _ = io.WriteString(u.client, rest)
	u.client.Close()
	return <-u.result
}

// TestUploadAgainstPrune checks that collections and repairs neither wait for a slow client nor remove what it has
// sent.
func TestUploadAgainstPrune(t *testing.T) {
	s := storetest.NewStore(t)
	store.Clock(time.Now)(s)
	store.Waits(time.Second, time.Minute)(s)
	const text = "first half, second half"
	u := beginUpload(t, s, text, ingest.UploadOptions{})
	left := storetest.Files(t, s, store.IngestDir)
	if len(left) != 2 {
		t.Fatalf("in ingest/: %v", left)
	}
	for _, age := range []time.Duration{0, 2 * ingest.Age} {
		store.Clock(func() time.Time { return time.Now().Add(age) })(s)
		for _, o := range []collect.PruneOptions{{DryRun: true}, {}, {Unfinished: true}} {
			if r := storetest.Prune(t, s, o); len(r.Items) > 0 {
				t.Errorf("prune %+v removed %+v", o, r)
			}
		}
		storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
		storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{Repair: true}))
		if usage, err := collect.UsageOf(t.Context(), s); err != nil || usage.ReclaimableBytes > 0 {
			t.Errorf("usage %+v, %v", usage, err)
		}
	}
	store.Clock(time.Now)(s)
	if got := storetest.Files(t, s, store.IngestDir); !slices.Equal(got, left) {
		t.Fatalf("in ingest/: %v, want %v", got, left)
	}
	if err := u.end(text[len(text)/2:]); err != nil {
		t.Fatal(err)
	}
	dir, remove, err := ingest.Folder(s, map[string]digest.Digest{"a": digest.FromString(text)})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/a"); err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
	remove()
	if got := storetest.Files(t, s, store.IngestDir); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

// TestUploadPublishWaits checks that an upload is not renamed while a collection runs.
func TestUploadPublishWaits(t *testing.T) {
	s := storetest.NewStore(t)
	u := beginUpload(t, s, "text", ingest.UploadOptions{})
	release, err := s.Locks().Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- u.end("xt") }()
	select {
	case err := <-ended:
		t.Errorf("the upload ended while the store was locked: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	release()
	if err := <-ended; err != nil || !ingest.HasUpload(s, digest.FromString("text")) {
		t.Errorf("the upload: %v", err)
	}
}

// TestUploadsAndPruneAtOnce checks that concurrent collections keep finished uploads and do not disturb others.
func TestUploadsAndPruneAtOnce(t *testing.T) {
	s := storetest.NewStore(t)
	store.Clock(time.Now)(s)
	ctx, stop := context.WithCancel(t.Context())
	var collector sync.WaitGroup
	collector.Go(func() {
		for ctx.Err() == nil {
			if _, err := collect.Prune(t.Context(), s, collect.PruneOptions{}); err != nil && !errors.Is(err, manifest.ErrBusy) {
				t.Error(err)
			}
		}
	})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for j := range 5 {
				text := fmt.Sprint("file ", i, j)
				d := digest.FromString(text)
				slow := iotest.OneByteReader(strings.NewReader(text))
				if err := ingest.PutUpload(t.Context(), s, d, slow, ingest.UploadOptions{}); err != nil || !ingest.HasUpload(s, d) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	clients.Wait()
	stop()
	collector.Wait()
	if got := storetest.Files(t, s, store.IngestDir); len(got) != 20 {
		t.Errorf("in ingest/: %v", got)
	}
}

// TestKilledUpload checks that a collection or repair removes the files of an upload whose process was killed.
func TestKilledUpload(t *testing.T) {
	s := storetest.NewStore(t)
	store.Clock(time.Now)(s)
	for name, collect := range map[string]func(){
		"prune": func() {
			r := storetest.Prune(t, s, collect.PruneOptions{})
			if len(r.Items) != 1 || r.Items[0].Kind != collect.PrunedFile || r.Bytes < int64(len("half")) {
				t.Errorf("pruned %+v", r)
			}
		},
		"repair": func() {
			storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{Repair: true})) // too young: it may be in use
			store.Clock(func() time.Time { return time.Now().Add(2 * ingest.StrayAge) })(s)
			r := storetest.Fsck(t, s, fsck.Options{Repair: true})
			if len(r.Problems) != 1 || !r.Problems[0].Fixed || r.Problems[0].Kind != fsck.ProblemLeftover {
				t.Errorf("repaired %+v", r.Problems)
			}
			store.Clock(time.Now)(s)
		},
	} {
		cmd := storetest.Child(t, "send", s.Root())
		storetest.StartReady(t, cmd)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if got := storetest.Files(t, s, store.IngestDir); len(got) != 2 {
			t.Fatalf("%s: left %v", name, got)
		}
		collect()
		storetest.CheckTidy(t, s)
	}
}

// TestUploadSpaceStep checks that an upload of unknown size checks the free space after each step, and stays within it.
func TestUploadSpaceStep(t *testing.T) {
	s := storetest.NewStore(t)
	const keep = 1 << 20
	free := int64(keep + 2*limits.UploadSpaceStep)
	checks := 0
	s.Space().Free = func(string) (int64, bool) {
		checks++
		return free, true
	}
	read := 0
	endless := readerFunc(func(p []byte) (int, error) {
		n := min(len(p), 32<<10)
		read += n
		free -= int64(n) // the disk fills
		return n, nil
	})
	err := ingest.PutUpload(t.Context(), s, digest.FromString("x"), endless, ingest.UploadOptions{KeepFree: keep})
	var full *disk.SpaceError
	if !errors.As(err, &full) || !errors.Is(err, manifest.ErrNoSpace) || full.Keep < keep {
		t.Errorf("the error is %v", err)
	}
	if read < limits.UploadSpaceStep || free < keep-64<<10 || checks < 2 || checks > 4 {
		t.Errorf("%d bytes were read, %d are free, after %d checks", read, free, checks)
	}
	storetest.CheckTidy(t, s)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestUploadsShareTheDisk checks that space reserved for one upload is not available to other uploads or a pull.
func TestUploadsShareTheDisk(t *testing.T) {
	s := storetest.NewStore(t)
	s.Space().Free = func(string) (int64, bool) { return 6 << 20, true }
	text := strings.Repeat("x", 4<<20)
	o := ingest.UploadOptions{Size: int64(len(text)), KeepFree: 1 << 20}
	first := beginUpload(t, s, text, o) // half of it is written, but the free space does not change
	second := func() error {
		more, o := text+"y", ingest.UploadOptions{Size: o.Size + 1, KeepFree: o.KeepFree}
		return ingest.PutUpload(t.Context(), s, digest.FromString(more), strings.NewReader(more), o)
	}
	if err := second(); !errors.Is(err, manifest.ErrNoSpace) {
		t.Errorf("the second upload: %v", err)
	}
	if err := s.Space().Check(5 << 20); !errors.Is(err, manifest.ErrNoSpace) {
		t.Errorf("a pull: %v", err)
	}
	if err := first.end(text[len(text)/2:]); err != nil {
		t.Fatal(err)
	}
	if err := second(); err != nil {
		t.Errorf("after the first: %v", err)
	}
	if err := s.Space().Check(5 << 20); err != nil {
		t.Errorf("a pull after it: %v", err)
	}
	if got := storetest.Files(t, s, store.IngestDir); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}

// TestRepairRemovesFolder checks that a repair removes the folder of a killed create, but not the uploads it links to.
func TestRepairRemovesFolder(t *testing.T) {
	s := storetest.NewStore(t)
	d := upload(t, s, "a")
	dir, _, err := ingest.Folder(s, map[string]digest.Digest{"a": d})
	if err != nil {
		t.Fatal(err)
	}
	old := s.Now().Add(-2 * ingest.StrayAge)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	r := storetest.Fsck(t, s, fsck.Options{Repair: true})
	if len(r.Problems) != 1 || !r.Problems[0].Fixed || r.Problems[0].Kind != fsck.ProblemLeftover {
		t.Errorf("repaired %+v", r.Problems)
	}
	if got := storetest.Files(t, s, store.IngestDir); len(got) != 1 || !ingest.HasUpload(s, d) {
		t.Errorf("left %v", got)
	}
}
