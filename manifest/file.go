package manifest

import (
	"fmt"
	"os"
	"path/filepath"
)

// newTemp makes a file in ingest/, which is on the same file system as the place that it will be renamed to.
func (s *Store) newTemp(pattern string) (*os.File, error) {
	dir := s.path(ingestDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { // a layout that another tool made has no such folder
		return nil, err
	}
	return os.CreateTemp(dir, pattern)
}

// publish gives a complete temporary file its mode, makes both durable, and gives it its name. The caller removes the
// file when this fails.
func publish(f *os.File, mode os.FileMode, path string) error {
	if err := settle(f, mode); err != nil {
		return err
	}
	return rename(f.Name(), path)
}

// settle gives a complete file its mode, makes both durable, and closes it.
func settle(f *os.File, mode os.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// replaceFile writes a small file of the store's folder in one step.
func (s *Store) replaceFile(name string, b []byte) error { return s.replaceFileMode(name, b, 0o644) }

// replaceFileMode is replaceFile with the file's mode. A file that only its owner may read belongs to the owner of the
// store also where root writes it.
func (s *Store) replaceFileMode(name string, b []byte, mode os.FileMode) error {
	f, err := s.newTemp(name + "-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	path := s.path(name)
	if err == nil {
		if root, fault := os.Stat(s.root); fault == nil && mode&0o077 == 0 {
			chownLike(f.Name(), root)
		}
		err = publish(f, mode, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// makeBlobsDir makes the folder of the blobs durably where there is none, so that no crash takes it away with the blobs
// that it got since. The layout of another tool may have none, and neither has a store whose making a crash has
// interrupted.
func (s *Store) makeBlobsDir() error {
	dir := s.path(blobsDir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for dir != s.root {
		dir = filepath.Dir(dir)
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
