package manifest

import (
	"os"
)

// publish sets the mode of a complete temporary file, syncs it and renames it to path. If it fails, the caller removes
// the file.
func publish(f *os.File, mode os.FileMode, path string) error {
	if err := syncAndClose(f, mode); err != nil {
		return err
	}
	return rename(f.Name(), path)
}

// syncAndClose sets the mode of a complete file, syncs the file and closes it.
func syncAndClose(f *os.File, mode os.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
