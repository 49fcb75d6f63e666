package manifest

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
)

func TestProcessesPutAtOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store") // created by the first process
	const processes = 4
	runChildren(t, processes, "put", root)
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"common:latest"}
	for p := range processes {
		for m := range 5 {
			want = append(want, fmt.Sprintf("p%d/m%d:latest", p, m))
		}
	}
	if got := names(t, s); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	checkTidy(t, s)
}

func TestProcessesPutAndRemoveAtOnce(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "bystander", "constant", "bystander")
	runChildren(t, 3, "mix", s.Root())
	checkTidy(t, s)
	wantBlobs(t, s, map[string]bool{"bystander": true})
	for _, name := range names(t, s) {
		remove(t, s, name)
	}
	if got := files(t, s, "blobs/sha256"); len(got) > 0 {
		t.Errorf("blobs left: %v", got)
	}
}

// A process is killed repeatedly at random moments. The store stays consistent and usable.
func TestKilledProcess(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := createModel(t.Context(), s, "bystander", "constant", "bystander"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		cmd := child(t, "churn", root)
		stdout := startReady(t, cmd)
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
		if s, err = Open(root); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
		if got := names(t, s); !slices.Contains(got, "bystander:latest") {
			t.Fatalf("names %v", got)
		}
	}
	// The next operations remove what the killed processes left.
	if err := createModel(t.Context(), s, "m9", "m9"); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t, s) {
		remove(t, s, name)
	}
	begun := slices.DeleteFunc(files(t, s, "ingest"),
		func(name string) bool { return !strings.HasPrefix(name, partialPrefix) })
	if got := slices.Concat(files(t, s, "blobs/sha256"), files(t, s, "holders"), begun); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestRemoveNamesTheHolder(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "a")
	cmd := child(t, "hold", s.Root())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	startReady(t, cmd)
	err = s.Remove(t.Context(), mustName(t, "a"))
	var busy *BusyError
	if !errors.Is(err, ErrBlobsKept) || !errors.As(err, &busy) {
		t.Fatalf("error %v", err)
	}
	want := []Holder{{PID: cmd.Process.Pid, Command: filepath.Base(os.Args[0])}}
	if !slices.Equal(busy.Holders, want) {
		t.Errorf("holders %v, want %v", busy.Holders, want)
	}
	if got := files(t, s, "holders"); len(got) != 1 {
		t.Errorf("notes %v", got)
	}
	if strings.Contains(err.Error(), childArg) {
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
	if got := s.Locks().Holders(); len(got) > 0 || len(files(t, s, "holders")) > 0 {
		t.Errorf("holders %v, notes %v", got, files(t, s, "holders"))
	}
	putModel(t, s, "b", "b")
	remove(t, s, "b")
	wantBlobs(t, s, map[string]bool{"a": false, "b": false})
}
