// Package atomicfile replaces files whole: a reader sees the old content or the new one, and a failure keeps the old.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix begins the names of unfinished files. They lie beside the file that they replace; a process that is killed
// leaves one behind.
const TempPrefix = ".ingot-"

// Write replaces the file at path by what write writes. The file gets the mode. If write or the replacement fails, the
// old file stays. A caller that needs durability syncs in write.
func Write(path string, mode fs.FileMode, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix+"*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Rename(f.Name(), path)
}
