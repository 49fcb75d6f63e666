//go:build unix

package prefix

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/internal/limits/place"
)

// TestDiskOfOthers opens no folder that others could have written: they would choose what a prompt's state is.
func TestDiskOfOthers(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"for everybody":     func(dir string) error { return os.Chmod(dir, 0o777) },
		"for others":        func(dir string) error { return os.Chmod(dir, 0o703) },
		"a stranger's":      func(dir string) error { return os.Chown(dir, 65534, 65534) },
		"a stranger's, all": func(dir string) error { return errors.Join(os.Chmod(dir, 0o777), os.Chown(dir, 65534, 65534)) },
	} {
		dir := t.TempDir()
		if err := change(dir); errors.Is(err, os.ErrPermission) {
			continue // only root gives folders away
		} else if err != nil {
			t.Fatal(err)
		}
		d, err := OpenDisk(DiskOptions{Dir: dir, Model: "a model"})
		if err == nil {
			d.Close()
		}
		if !errors.Is(err, place.ErrUntrusted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDiskStrangeFiles takes what is no file of this user for a miss, and waits for nobody: a pipe, a link to one, a
// folder, and a file that others may write, there from the start or put there later.
func TestDiskStrangeFiles(t *testing.T) {
	env := environments[2]
	for name, put := range map[string]func(path string) error{
		"a pipe": func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"a link to a pipe": func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path+"x", 0o600), os.Symlink(path+"x", path))
		},
		"a folder":      func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"for everybody": func(path string) error { return os.Chmod(path, 0o666) },
	} {
		for _, later := range []bool{false, true} {
			o := DiskOptions{Dir: t.TempDir()}
			life(t, env, 0, o, func(w *world) { w.run(keys(1, 40), 50) })
			files, err := filepath.Glob(filepath.Join(o.Dir, "*"+suffix))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			change := func() {
				errs := slices.Collect(func(yield func(error) bool) {
					for _, f := range files {
						yield(put(f))
					}
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			}
			if !later {
				change()
			}
			s := life(t, env, 0, o, func(w *world) {
				if later {
					change()
				}
				w.wantRun(41, 0, join(keys(1, 40), []Key{50, 51}))
			})
			if s.Loaded != 0 {
				t.Errorf("%s, later %v: %+v", name, later, s)
			}
		}
	}
}
