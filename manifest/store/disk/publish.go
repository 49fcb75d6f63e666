package disk

import (
	"os"

	"github.com/ingotml/ingot/internal/atomicfile"
)

// Publish sets the mode of a complete temporary file, syncs it and renames it to path. If it fails, the caller removes
// the file.
func Publish(f *os.File, mode os.FileMode, path string) error {
	if err := SyncAndClose(f, mode); err != nil {
		return err
	}
	return atomicfile.Rename(f.Name(), path)
}

// SyncAndClose sets the mode of a complete file, syncs the file and closes it.
func SyncAndClose(f *os.File, mode os.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := Sync(f); err != nil {
		return err
	}
	return f.Close()
}
