package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
)

// target is the folder being written.
type target struct {
	dir     string
	staging string // the hidden subfolder
	made    bool   // the folder was absent
	done    bool
	keep    bool // the next export resumes from what was written
	lock    *flock.Flock
}

// stagingName is the hidden folder of an unfinished export. Earlier versions added a random suffix.
const (
	stagingName = ".ingot-export"
	lockName    = ".lock" // in the hidden folder
)

// openTarget creates the folder if it is absent, and takes over what a failed or killed export left in it.
func openTarget(ctx context.Context, dir string) (*target, error) {
	t := &target{dir: dir, staging: filepath.Join(dir, stagingName)}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.made = true
	case err != nil:
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == stagingName && !e.IsDir() { // a link would lead the files elsewhere
			return nil, fmt.Errorf("%s: %w: %s in it is not a folder; remove it", dir, ErrExport, stagingName)
		}
		if !strings.HasPrefix(e.Name(), stagingName) {
			return nil, fmt.Errorf("%s: %w: the folder holds %s; name one that is empty or does not exist",
				dir, ErrExport, e.Name())
		}
	}
	folder := func() error { return os.MkdirAll(t.staging, 0o755) }
	t.lock, err = lock.Take(ctx, filepath.Join(t.staging, lockName), lock.Options{Folder: folder, NoWait: true})
	var busy *lock.BusyError
	if errors.As(err, &busy) {
		return nil, fmt.Errorf("%s: %w: another export writes to it", dir, ErrExport)
	}
	if err != nil {
		t.abandon()
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == stagingName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.abandon()
			return nil, err
		}
	}
	return t, nil
}

// prepare removes everything from the hidden folder that is not one of the files to be written, and checks that the
// disk has space for the bytes that are missing.
func (t *target) prepare(names []string, bytes int64, space *disk.Space) error {
	var folders []string
	err := filepath.WalkDir(t.staging, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		if err != nil || d.IsDir() || path == filepath.Join(t.staging, lockName) {
			return err
		}
		name, err := filepath.Rel(t.staging, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || !slices.Contains(names, filepath.ToSlash(name)) {
			return os.Remove(path)
		}
		bytes -= info.Size()
		t.keep = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(folders[1:]) {
		_ = os.Remove(f) // fails if files are left in it
	}
	if space == nil {
		space = disk.NewSpace(t.staging)
	}
	var short *disk.SpaceError
	if err := space.Check(max(bytes, 0)); errors.As(err, &short) {
		return fmt.Errorf("%w: %d bytes more are needed, and %d are free; free some space or name a folder on another disk",
			manifest.ErrNoSpace, short.Need, short.Free)
	}
	return nil
}

// complete renames all files to their final names. The configuration is last: without it, the folder is not a model.
func (t *target) complete() error {
	entries, err := os.ReadDir(t.staging)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == lockName })
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Compare(last(a.Name() == source.ConfigName), last(b.Name() == source.ConfigName))
	})
	for i, e := range entries {
		if err := os.Rename(filepath.Join(t.staging, e.Name()), filepath.Join(t.dir, e.Name())); err != nil {
			for _, e := range entries[:i] {
				_ = os.RemoveAll(filepath.Join(t.dir, e.Name()))
			}
			return err
		}
	}
	t.done = true
	lock.Drop(t.lock)
	return os.Remove(t.staging)
}

func last(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// abandon ends an export that is not complete. It removes what was written, unless the next export resumes from it.
func (t *target) abandon() {
	if t.done {
		return
	}
	if t.lock != nil {
		lock.Drop(t.lock)
	}
	if t.keep {
		return
	}
	_ = os.RemoveAll(t.staging)
	if t.made {
		_ = os.Remove(t.dir) // fails if others have put files there
	}
}
