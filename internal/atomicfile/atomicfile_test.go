package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// content returns what the only file of a folder has.
func content(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	b, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func text(s string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(s)
		return err
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, c := range []struct {
		text string
		mode fs.FileMode
	}{{"first", 0o600}, {"second, longer", 0o644}, {"", 0o600}} {
		if err := Write(path, c.mode, text(c.text)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, dir); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode() != c.mode {
			t.Errorf("mode %v, want %v", info.Mode(), c.mode)
		}
	}
}

// A failure keeps the old file and leaves nothing beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Write(path, 0o600, text("old")); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err := Write(path, 0o600, func(f *os.File) error { return errors.Join(text("new")(f), refused) })
	if !errors.Is(err, refused) {
		t.Errorf("error %v, want %v", err, refused)
	}
	if got := content(t, dir); got != "old" {
		t.Errorf("%q after a failure, want the old content", got)
	}
	if err := Write(filepath.Join(dir, "none", "file"), 0o600, text("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
	if err := Write(dir, 0o600, text("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
}
