//go:build unix

package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/place"
)

// TestUntrusted finds no engine that others could have written, wherever it is, and compiles no wheel of theirs.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	ext := thisHost().libExt()
	lib, bridge := filepath.Join("mlx", "lib", "libmlx"+ext), filepath.Join("bridge", "libingot_mlx"+ext)
	const stranger = 65534
	all := func(dir string, do func(path string) error) error {
		return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { return errors.Join(err, do(path)) })
	}
	for _, test := range []struct {
		name   string
		change func(dir string) error
	}{
		{"all of a stranger's", func(dir string) error {
			return all(dir, func(path string) error { return os.Chown(path, stranger, stranger) })
		}},
		{"all for everybody", func(dir string) error {
			return all(dir, func(path string) error { return os.Chmod(path, 0o777) })
		}},
		{"the bridge is a stranger's", func(dir string) error { return os.Chown(filepath.Join(dir, bridge), stranger, 0) }},
		{"the bridge is for everybody", func(dir string) error { return os.Chmod(filepath.Join(dir, bridge), 0o666) }},
		{"the library is for everybody", func(dir string) error { return os.Chmod(filepath.Join(dir, lib), 0o646) }},
		{"the library's folder", func(dir string) error { return os.Chmod(filepath.Dir(filepath.Join(dir, lib)), 0o757) }},
		{"the description", func(dir string) error { return os.Chmod(filepath.Join(dir, manifestName), 0o666) }},
		{"a library that it loads", func(dir string) error {
			path := filepath.Join(dir, "helper"+ext)
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chown(path, stranger, 0))
		}},
		{"a link to a stranger's", func(dir string) error {
			to := filepath.Join(filepath.Dir(dir), "theirs")
			return errors.Join(os.Rename(filepath.Join(dir, bridge), to), os.Chown(to, stranger, 0),
				os.Symlink(to, filepath.Join(dir, bridge)))
		}},
		{"the folder above is a stranger's", func(dir string) error { return os.Chown(filepath.Dir(dir), stranger, 0) }},
		{"the folder above is for everybody", func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }},
	} {
		dir := filepath.Join(t.TempDir(), "engine")
		err := errors.Join(os.Rename(engineFolder(t, CPU), dir), test.change(dir))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Find(emptyWorld(t, thisHost(), EnvEngine+"="+dir))
		if !errors.Is(err, ErrInvalid) || !errors.Is(err, place.ErrUntrusted) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestUntrustedWheel(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	w := newWorld(t)
	e := w.install()
	if err := os.RemoveAll(e.Dir); err != nil {
		t.Fatal(err)
	}
	wheels, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(e.Dir)), "wheels", "*", "mlx", "lib", "libmlx*"))
	if err != nil || len(wheels) != 1 {
		t.Fatal(wheels, err)
	}
	if err := os.Chmod(wheels[0], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), w.opts); !errors.Is(err, place.ErrUntrusted) || !errors.Is(err, ErrInvalid) {
		t.Errorf("a wheel that everybody may write: %v", err)
	}
}

// TestChangedBridge finds no engine whose bridge is another file than the installed one.
func TestChangedBridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.install()
	if err := os.WriteFile(e.Bridge, []byte("other code"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Find(w.opts)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "engine install") {
		t.Errorf("a changed bridge: %v", err)
	}
}
