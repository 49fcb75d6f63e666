package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
)

// workplace is a folder for unfinished files, beside their destination. Its lock keeps other writers of the same
// destination out. What a process that was killed has left is removed when the folder is used again.
type workplace struct {
	dir  string
	lock *flock.Flock
}

const (
	workName = atomicfile.TempPrefix + "copy" // of the folder
	lockName = "lock"
	tempName = "part-"
)

// openWork makes the folder at dir. waiting is called if another process has it.
func openWork(ctx context.Context, dir string, waiting func()) (*workplace, error) {
	folder := func() error {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder: %w", dir, ErrLayout)
		}
		return err
	}
	held, err := lock.Take(ctx, filepath.Join(dir, lockName), lock.Options{Folder: folder, Waiting: waiting})
	if err != nil {
		return nil, err
	}
	w := &workplace{dir, held}
	w.clean()
	return w, nil
}

// temp creates an unfinished file.
func (w *workplace) temp() (*os.File, error) { return os.CreateTemp(w.dir, tempName+"*") }

// clean removes unfinished files.
func (w *workplace) clean() {
	left, _ := filepath.Glob(filepath.Join(w.dir, tempName+"*"))
	for _, file := range left {
		os.Remove(file)
	}
}

// close removes the folder.
func (w *workplace) close() {
	w.clean()
	lock.Drop(w.lock)
	os.Remove(w.dir) // fails if another process has come, which removes it
}

// write writes a small file of the destination, and replaces an existing one atomically.
func (w *workplace) write(path string, b []byte) error {
	f, err := w.temp()
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := disk.Publish(f, 0o644, path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// checkSpace returns an error if the disk of a folder has less than need bytes.
func checkSpace(dir string, need int64) error { return full(dir, disk.NewSpace(dir).Check(need)) }

// full gives the error of a full disk the folder and the remedy.
func full(dir string, err error) error {
	err = disk.NoSpace(err)
	var space *disk.SpaceError
	switch {
	case errors.As(err, &space):
		return fmt.Errorf("%w: %s needs %d more bytes, but its disk has only %d free: free some space, or choose "+
			"another folder", manifest.ErrNoSpace, dir, space.Need, space.Free)
	case errors.Is(err, manifest.ErrNoSpace):
		return fmt.Errorf("%w: the disk of %s is full: free some space, or choose another folder", manifest.ErrNoSpace, dir)
	}
	return err
}
