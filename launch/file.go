package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/launch/json5"
)

// backup is the end of the name of what a file was before it was first changed.
const backup = ".before-ingot"

// maxFile bounds a file of a client.
const maxFile = 64 << 20

// edit changes a file of JSON5, and tells whether anything in it has changed.
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
				return false, fmt.Errorf("keep a copy: %w", err)
			}
		}
	}
	return true, writeFile(path, text)
}

// readFile gives nil for a file that is not there.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, maxFile)
	}
	b, err := os.ReadFile(path)
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

// writeFile writes a file whole or not at all. One that a link leads to is written where it is; its mode stays, and is 0600 for a new one, since
// it may have keys.
func writeFile(path string, text []byte) (err error) {
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
	f, err := os.CreateTemp(filepath.Dir(path), ".ingot-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
