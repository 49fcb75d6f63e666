//go:build unix

package verified

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestRecordsOfOthers takes no word for a digest that others could have written, and waits for no pipe.
func TestRecordsOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, old, old)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir, record string) error{
		"":                            func(_, _ string) error { return nil },
		"the folder is for everybody": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"the folder is a stranger's":  func(dir, _ string) error { return os.Chown(dir, 65534, 65534) },
		"the record is for everybody": func(_, record string) error { return os.Chmod(record, 0o666) },
		"the record is a stranger's":  func(_, record string) error { return os.Chown(record, 65534, 65534) },
		"the record is a pipe": func(_, record string) error {
			return errors.Join(os.Remove(record), syscall.Mkfifo(record, 0o600))
		},
	} {
		r := Records(t.TempDir())
		at := r.place(file)
		err := os.WriteFile(at, []byte(record(info, file, "digest")), 0o600)
		if err = errors.Join(err, change(string(r), at)); errors.Is(err, os.ErrPermission) {
			continue // only root gives files away
		} else if err != nil {
			t.Fatal(err)
		}
		if got := r.Has(info, file, "digest"); got != (name == "") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
