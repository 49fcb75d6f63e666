package collect_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

func TestProcessesPutAtOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store") // created by the first process
	const processes = 4
	storetest.RunChildren(t, processes, "put", root)
	s, err := store.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"common:latest"}
	for p := range processes {
		for m := range 5 {
			want = append(want, fmt.Sprintf("p%d/m%d:latest", p, m))
		}
	}
	if got := storetest.Names(t, s); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	storetest.CheckTidy(t, s)
}

func TestProcessesPutAndRemoveAtOnce(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "bystander", "constant", "bystander")
	storetest.RunChildren(t, 3, "mix", s.Root())
	storetest.CheckTidy(t, s)
	storetest.WantBlobs(t, s, map[string]bool{"bystander": true})
	for _, name := range storetest.Names(t, s) {
		storetest.Remove(t, s, name)
	}
	if got := storetest.Files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

// A process is killed repeatedly at random moments. The store stays consistent and usable.
func TestKilledProcess(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.CreateModel(t.Context(), s, "bystander", "constant", "bystander"); err != nil {
		t.Fatal(err)
	}
	for range runtest.Pick(20, 200) {
		cmd := storetest.Child(t, "churn", root)
		stdout := storetest.StartReady(t, cmd)
		time.Sleep(rand.N(40 * time.Millisecond))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if rest, _ := io.ReadAll(stdout); len(rest) > 0 {
			t.Fatalf("child printed %s", rest)
		}
		cmd.Wait()
		if msg := fmt.Sprint(cmd.Stderr); msg != "" {
			t.Fatalf("the child failed by itself: %s", msg)
		}
		if s, err = store.Open(root); err != nil {
			t.Fatal(err)
		}
		storetest.CheckStore(t, s)
		if got := storetest.Names(t, s); !slices.Contains(got, "bystander:latest") {
			t.Fatalf("names %v", got)
		}
	}
	// The next operations remove what the killed processes left.
	if err := storetest.CreateModel(t.Context(), s, "m9", "m9"); err != nil {
		t.Fatal(err)
	}
	for _, name := range storetest.Names(t, s) {
		storetest.Remove(t, s, name)
	}
	begun := slices.DeleteFunc(storetest.Files(t, s, "ingest"),
		func(name string) bool { return !strings.HasPrefix(name, store.PartialPrefix) })
	if got := slices.Concat(storetest.Files(t, s, "blobs/sha256"), storetest.Files(t, s, "holders"), begun); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestRemoveNamesTheHolder(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "a")
	cmd := storetest.Child(t, "hold", s.Root())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	storetest.StartReady(t, cmd)
	err = collect.Remove(t.Context(), s, storetest.MustName(t, "a"))
	var busy *lock.BusyError
	if !errors.Is(err, manifest.ErrBlobsKept) || !errors.As(err, &busy) {
		t.Fatalf("error %v", err)
	}
	want := []lock.Holder{{PID: cmd.Process.Pid, Command: filepath.Base(os.Args[0])}}
	if !slices.Equal(busy.Holders, want) {
		t.Errorf("holders %v, want %v", busy.Holders, want)
	}
	if got := storetest.Files(t, s, "holders"); len(got) != 1 {
		t.Errorf("notes %v", got)
	}
	if strings.Contains(err.Error(), storetest.ChildArg) {
		t.Errorf("the message contains the holder's arguments: %v", err)
	}
	err = filepath.WalkDir(s.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "s3cret") {
			t.Errorf("%s contains the holder's arguments: %s", path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// The process exited without removing its note, as if killed. The note no longer counts.
	if got := s.Locks().Holders(); len(got) > 0 || len(storetest.Files(t, s, "holders")) > 0 {
		t.Errorf("holders %v, notes %v", got, storetest.Files(t, s, "holders"))
	}
	storetest.PutModel(t, s, "b", "b")
	storetest.Remove(t, s, "b")
	storetest.WantBlobs(t, s, map[string]bool{"a": false, "b": false})
}
