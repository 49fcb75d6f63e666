package reload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watched is a value that is the text of a file; a text that begins with "bad" is an error.
type watched struct {
	*Value[string]
	path, log string
	reads     int
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{path: filepath.Join(t.TempDir(), "file")}
	w.write(t, "one")
	v, err := Load(func() (string, error) {
		w.reads++
		b, err := os.ReadFile(w.path)
		if err == nil && strings.HasPrefix(string(b), "bad") {
			err = errors.New("the file is bad")
		}
		return string(b), err
	}, func(format string, args ...any) { w.log += fmt.Sprintf(format, args...) + "\n" }, w.path)
	if err != nil {
		t.Fatal(err)
	}
	w.Value = v
	v.pause = 0
	return w
}

// write replaces the file. Its time differs from all earlier ones, which coarse clocks of file systems would not give.
func (w *watched) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(time.Second)
	if err := os.Chtimes(w.path, clock, clock); err != nil {
		t.Fatal(err)
	}
}

var clock = time.Now()

func (w *watched) is(t *testing.T, want string, reads int) {
	t.Helper()
	for range 3 {
		if got := w.Get(); got != want || w.reads != reads {
			t.Errorf("%q after %d reads, want %q after %d", got, w.reads, want, reads)
		}
	}
}

func TestReload(t *testing.T) {
	w := watch(t)
	w.is(t, "one", 1)
	w.write(t, "two")
	w.is(t, "two", 2)
	w.write(t, "bad")
	w.is(t, "two", 3) // it is read once
	if want := "the file is bad; what was read before stays in effect"; strings.Count(w.log, want) != 1 {
		t.Errorf("log %q", w.log)
	}
	w.write(t, "owt")
	w.is(t, "owt", 4)
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.is(t, "owt", 5)
	w.write(t, "again")
	w.is(t, "again", 6)
	other := w.path + ".new"
	if err := os.WriteFile(other, []byte("moved"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, clock, clock); err != nil { // the same time and size, another file
		t.Fatal(err)
	}
	if err := os.Rename(other, w.path); err != nil {
		t.Fatal(err)
	}
	w.is(t, "moved", 7)
}

// TestPause checks that the files are not looked at for each request.
func TestPause(t *testing.T) {
	w := watch(t)
	w.pause = time.Hour
	w.write(t, "two")
	w.is(t, "one", 1)
	w.looked = time.Now().Add(-2 * time.Hour)
	w.is(t, "two", 2)
	w.write(t, "three")
	w.looked = time.Now().Add(time.Hour) // the clock was set back
	w.is(t, "three", 3)
}

// TestNoFile checks that what is not a regular file is not read again, since that may never end.
func TestNoFile(t *testing.T) {
	w := watch(t)
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.path, 0o700); err != nil {
		t.Fatal(err)
	}
	w.is(t, "one", 1)
	if want := w.path + " is no longer a regular file"; strings.Count(w.log, want) != 1 {
		t.Errorf("log %q", w.log)
	}
	reads := 0
	v, err := Load(func() (int, error) { reads++; return reads, nil }, t.Logf, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v.pause = 0
	for range 2 {
		if v.Get() != 1 {
			t.Errorf("%d reads", reads)
		}
	}
}

func TestFirstFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, err := Load(func() ([]byte, error) { return os.ReadFile(path) }, t.Logf, path)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
