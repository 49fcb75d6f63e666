//go:build unix

package compiled

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFormsOfOthers uses no form that others could have written, and waits for no pipe.
func TestFormsOfOthers(t *testing.T) {
	for name, change := range map[string]func(dir, form string) error{
		"the folder is for everybody": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"the folder is a stranger's":  func(dir, _ string) error { return os.Chown(dir, 65534, 65534) },
		"the form is for everybody":   func(_, form string) error { return os.Chmod(form, 0o666) },
		"the form is a stranger's":    func(_, form string) error { return os.Chown(form, 65534, 65534) },
		"the form is a pipe": func(_, form string) error {
			return errors.Join(os.Remove(form), syscall.Mkfifo(form, 0o600))
		},
	} {
		dir := t.TempDir()
		form := filepath.Join(dir, "form")
		keep(form, []byte("a form"))
		if b, err := read(form); err != nil || string(b) != "a form" {
			t.Fatal(string(b), err)
		}
		if err := change(dir, form); errors.Is(err, os.ErrPermission) {
			continue // only root gives files away
		} else if err != nil {
			t.Fatal(err)
		}
		if b, err := read(form); err == nil {
			t.Errorf("%s: %q", name, b)
		}
	}
}
