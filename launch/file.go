package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/atomicfile"
	"github.com/ingotml/ingot/launch/json5"
)

// backup is appended to a file's name to name the copy of its original content.
const backup = ".before-ingot"

// maxFile is the largest client file that is read, in bytes.
const maxFile = 64 << 20

// edit applies change to a JSON5 file and reports whether its content changed. Before the first change it saves a copy.
func edit(path string, change func(*json5.Document) error) (bool, error) {
	old, err := readFile(path)
	if err != nil {
		return false, err
	}
	d, err := json5.Parse(old)
	if err == nil {
		err = change(d)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	text := d.Bytes()
	if bytes.Equal(text, old) {
		return false, nil
	}
	if old != nil {
		if _, err := os.Lstat(path + backup); errors.Is(err, fs.ErrNotExist) {
			if err := writeFile(path+backup, old); err != nil {
				return false, fmt.Errorf("save a copy before the first change: %w", err)
			}
		}
	}
	return true, writeFile(path, text)
}

// readFile returns nil if the file does not exist.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxFile)
	}
	b, err := os.ReadFile(path)
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

// writeFile replaces a file atomically. It follows a symbolic link and replaces the link's target. An existing file
// keeps its mode. A new one gets 0600, since it may contain keys.
func writeFile(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, mode, func(f *os.File) error {
		if _, err := f.Write(text); err != nil {
			return err
		}
		return f.Sync()
	})
}
