package manifest

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

	"github.com/ingotml/ingot/limits"
	"github.com/opencontainers/go-digest"
)

func init() {
	// A client that sends "half" and then stalls until the process is killed.
	ChildJobs["send"] = func(ctx context.Context, s *Store, _ string) error {
		r, w := io.Pipe()
		go func() {
			io.WriteString(w, "half")
			io.WriteString(w, "x") // read after the first bytes are written to disk
			fmt.Println("ready")
		}()
		return s.PutUpload(ctx, digest.FromString("half and more"), r, UploadOptions{})
	}
}

// slowUpload is an upload of which the client has sent a part.
type slowUpload struct {
	client *io.PipeWriter
	result chan error
}

// beginUpload starts to upload a text and returns when the first half has been read.
func beginUpload(t *testing.T, s *Store, text string, o UploadOptions) slowUpload {
	t.Helper()
	r, w := io.Pipe()
	u := slowUpload{w, make(chan error, 1)}
	go func() {
		err := s.PutUpload(t.Context(), digest.FromString(text), r, o)
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
	s := newStore(t)
	Clock(time.Now)(s)
	Waits(time.Second, time.Minute)(s)
	const text = "first half, second half"
	u := beginUpload(t, s, text, UploadOptions{})
	left := files(t, s, ingestDir)
	if len(left) != 2 {
		t.Fatalf("in ingest/: %v", left)
	}
	for _, age := range []time.Duration{0, 2 * IngestAge} {
		Clock(func() time.Time { return time.Now().Add(age) })(s)
		for _, o := range []PruneOptions{{DryRun: true}, {}, {Unfinished: true}} {
			if r := prune(t, s, o); len(r.Items) > 0 {
				t.Errorf("prune %+v removed %+v", o, r)
			}
		}
		wantProblems(t, fsck(t, s, FsckOptions{}))
		wantProblems(t, fsck(t, s, FsckOptions{Repair: true}))
		if usage, err := s.Usage(t.Context()); err != nil || usage.ReclaimableBytes > 0 {
			t.Errorf("usage %+v, %v", usage, err)
		}
	}
	Clock(time.Now)(s)
	if got := files(t, s, ingestDir); !slices.Equal(got, left) {
		t.Fatalf("in ingest/: %v, want %v", got, left)
	}
	if err := u.end(text[len(text)/2:]); err != nil {
		t.Fatal(err)
	}
	dir, remove, err := s.Folder(map[string]digest.Digest{"a": digest.FromString(text)})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/a"); err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
	remove()
	if got := files(t, s, ingestDir); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

// TestUploadPublishWaits checks that an upload is not renamed while a collection runs.
func TestUploadPublishWaits(t *testing.T) {
	s := newStore(t)
	u := beginUpload(t, s, "text", UploadOptions{})
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
	if err := <-ended; err != nil || !s.HasUpload(digest.FromString("text")) {
		t.Errorf("the upload: %v", err)
	}
}

// TestUploadsAndPruneAtOnce checks that concurrent collections keep finished uploads and do not disturb others.
func TestUploadsAndPruneAtOnce(t *testing.T) {
	s := newStore(t)
	Clock(time.Now)(s)
	ctx, stop := context.WithCancel(t.Context())
	var collector sync.WaitGroup
	collector.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Prune(t.Context(), PruneOptions{}); err != nil && !errors.Is(err, ErrBusy) {
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
				if err := s.PutUpload(t.Context(), d, slow, UploadOptions{}); err != nil || !s.HasUpload(d) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	clients.Wait()
	stop()
	collector.Wait()
	if got := files(t, s, ingestDir); len(got) != 20 {
		t.Errorf("in ingest/: %v", got)
	}
}

// TestKilledUpload checks that a collection or repair removes the files of an upload whose process was killed.
func TestKilledUpload(t *testing.T) {
	s := newStore(t)
	Clock(time.Now)(s)
	for name, collect := range map[string]func(){
		"prune": func() {
			r := prune(t, s, PruneOptions{})
			if len(r.Items) != 1 || r.Items[0].Kind != PrunedFile || r.Bytes < int64(len("half")) {
				t.Errorf("pruned %+v", r)
			}
		},
		"repair": func() {
			wantProblems(t, fsck(t, s, FsckOptions{Repair: true})) // too young: it may be in use
			Clock(func() time.Time { return time.Now().Add(2 * strayAge) })(s)
			r := fsck(t, s, FsckOptions{Repair: true})
			if len(r.Problems) != 1 || !r.Problems[0].Fixed || r.Problems[0].Kind != ProblemLeftover {
				t.Errorf("repaired %+v", r.Problems)
			}
			Clock(time.Now)(s)
		},
	} {
		cmd := child(t, "send", s.Root())
		startReady(t, cmd)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if got := files(t, s, ingestDir); len(got) != 2 {
			t.Fatalf("%s: left %v", name, got)
		}
		collect()
		checkTidy(t, s)
	}
}

// TestUploadSpaceStep checks that an upload of unknown size checks the free space after each step, and stays within it.
func TestUploadSpaceStep(t *testing.T) {
	s := newStore(t)
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
	err := s.PutUpload(t.Context(), digest.FromString("x"), endless, UploadOptions{KeepFree: keep})
	var full *SpaceError
	if !errors.As(err, &full) || !errors.Is(err, ErrNoSpace) || full.Keep < keep {
		t.Errorf("the error is %v", err)
	}
	if read < limits.UploadSpaceStep || free < keep-64<<10 || checks < 2 || checks > 4 {
		t.Errorf("%d bytes were read, %d are free, after %d checks", read, free, checks)
	}
	checkTidy(t, s)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestUploadsShareTheDisk checks that space reserved for one upload is not available to other uploads or a pull.
func TestUploadsShareTheDisk(t *testing.T) {
	s := newStore(t)
	s.Space().Free = func(string) (int64, bool) { return 6 << 20, true }
	text := strings.Repeat("x", 4<<20)
	o := UploadOptions{Size: int64(len(text)), KeepFree: 1 << 20}
	first := beginUpload(t, s, text, o) // half of it is written, but the free space does not change
	second := func() error {
		more, o := text+"y", UploadOptions{Size: o.Size + 1, KeepFree: o.KeepFree}
		return s.PutUpload(t.Context(), digest.FromString(more), strings.NewReader(more), o)
	}
	if err := second(); !errors.Is(err, ErrNoSpace) {
		t.Errorf("the second upload: %v", err)
	}
	if err := s.Space().Check(5 << 20); !errors.Is(err, ErrNoSpace) {
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
	if got := files(t, s, ingestDir); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}

// TestRepairRemovesFolder checks that a repair removes the folder of a killed create, but not the uploads it links to.
func TestRepairRemovesFolder(t *testing.T) {
	s := newStore(t)
	d := upload(t, s, "a")
	dir, _, err := s.Folder(map[string]digest.Digest{"a": d})
	if err != nil {
		t.Fatal(err)
	}
	old := s.Now().Add(-2 * strayAge)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	r := fsck(t, s, FsckOptions{Repair: true})
	if len(r.Problems) != 1 || !r.Problems[0].Fixed || r.Problems[0].Kind != ProblemLeftover {
		t.Errorf("repaired %+v", r.Problems)
	}
	if got := files(t, s, ingestDir); len(got) != 1 || !s.HasUpload(d) {
		t.Errorf("left %v", got)
	}
}
