package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/manifest/store/disk"
)

// NewTemp creates a temporary file in ingest/. It is on the same file system as its destination, so it can be renamed
// there.
func (s *Store) NewTemp(pattern string) (*os.File, error) {
	dir := s.Path(IngestDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { // layouts made by other tools lack this folder
		return nil, err
	}
	return os.CreateTemp(dir, pattern)
}

// replaceFile atomically and durably replaces a small file in the store's folder. The caller holds the index lock.
func (s *Store) replaceFile(name string, b []byte) error { return s.replaceFileMode(name, b, 0o644) }

// replaceFileMode is replaceFile with a file mode. If only the owner may read the file, it is given to the owner of the
// store, even if root writes it.
func (s *Store) replaceFileMode(name string, b []byte, mode os.FileMode) error {
	f, err := s.NewTemp(name + "-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	path := s.Path(name)
	if err == nil {
		if root, fault := os.Stat(s.root); fault == nil && mode&0o077 == 0 {
			disk.ChownLike(f.Name(), root)
		}
		err = disk.Publish(f, mode, path)
	}
	if err == nil {
		err = disk.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	s.removeTemp(name)
	return nil
}

// removeTemp removes the temporary files of killed processes that were replacing the same file.
func (s *Store) removeTemp(name string) {
	entries, err := os.ReadDir(s.Path(IngestDir))
	if err != nil {
		return // a collection finds what is left
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+"-") {
			os.Remove(s.Path(IngestDir, e.Name()))
		}
	}
}

// MakeBlobsDir creates the blobs folder if it does not exist, and syncs its parents, so that a crash cannot lose the
// folder with blobs committed to it later. The folder is absent in some layouts of other tools, and in a store whose
// creation was interrupted by a crash.
func (s *Store) MakeBlobsDir() error {
	dir := s.Path(BlobsDir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for dir != s.root {
		dir = filepath.Dir(dir)
		if err := disk.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
