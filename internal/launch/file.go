package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/launch/json5"
	"github.com/ingotml/ingot/internal/limits/place"
)

// backup is appended to a file's name to name the copy of its original content.
const backup = ".before-ingot"

// maxFile is the largest client file that is read, in bytes.
const maxFile = 64 << 20

// edit applies change to a JSON5 file and reports whether its content changed. Before the first change it saves a copy.
// A file that gets a secret is for its owner alone afterwards, whoever could read it before.
func edit(path string, s Setup, secret bool, change func(*json5.Document) error) (bool, error) {
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
	was, err := modeOf(path)
	if err != nil {
		return false, err
	}
	mode := was
	if secret && s.Key != "" {
		mode &^= othersMay
	}
	if bytes.Equal(text, old) && mode == was {
		return false, nil
	}
	if mode != was && s.Note != nil {
		s.Note("note: only you may read %s from now on (its mode was %04o): it has the server's API key", path, was)
	}
	if old != nil {
		if _, err := os.Lstat(path + backup); errors.Is(err, fs.ErrNotExist) {
			if err := writeFile(path+backup, old, newMode); err != nil {
				return false, fmt.Errorf("save a copy before the first change: %w", err)
			}
		}
	}
	return true, writeFile(path, text, mode)
}

const (
	newMode   fs.FileMode = 0o600 // of new files, since they may have keys
	othersMay fs.FileMode = 0o077
)

// modeOf returns the mode of a file, or of one that is to be made.
func modeOf(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newMode, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

// readFile returns nil if the file does not exist.
func readFile(path string) ([]byte, error) {
	b, err := place.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// writeFile replaces a file atomically. It follows a symbolic link and replaces the link's target.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
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
