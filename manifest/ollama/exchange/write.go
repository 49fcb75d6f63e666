package exchange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store/disk"
)

// partialPattern is the name pattern of files being written to Ollama's blobs folder. Ollama deletes files with such
// names if they have not been modified for an hour.
const partialPattern = "sha256-ingot-*"

// put writes a manifest atomically. Its temporary file is in blobs/, which Ollama cleans, if that is on the same file
// system.
func (o *Ollama) put(name ollama.Name, manifestBytes []byte) error {
	path, _ := o.find(name)
	if err := o.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	err := o.putFrom(filepath.Join(o.root, blobsDir), path, manifestBytes)
	if err != nil {
		// blobs/ may be a link to another disk. Ollama looks for manifests only four levels below manifests/, so it ignores
		// the temporary file there.
		err = o.putFrom(filepath.Join(o.root, manifestsDir), path, manifestBytes)
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

func (o *Ollama) putFrom(dir, path string, manifestBytes []byte) error {
	f, err := os.CreateTemp(dir, partialPattern)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(manifestBytes); err != nil {
		return err
	}
	o.own(f.Name())
	return disk.Publish(f, 0o644, path)
}

// ownedLike reports whether a file belongs to the owner of the store's folder. A file of another owner must be copied
// instead of linked; see own.
func (o *Ollama) ownedLike(file fs.FileInfo) bool {
	root, err := os.Stat(o.root)
	return err == nil && disk.SameOwner(root, file)
}

// own gives a file to the owner of the store's folder, if permitted. Root may write to the store of the Ollama service,
// which runs as another user and must be able to touch and remove what is there.
func (o *Ollama) own(path string) {
	if root, err := os.Stat(o.root); err == nil {
		disk.ChownLike(path, root)
	}
}

// mkdir creates a folder in the store and its missing parents.
func (o *Ollama) mkdir(dir string) error {
	if isDir(dir) {
		return nil
	}
	if dir == o.root {
		return os.MkdirAll(dir, 0o755)
	}
	if err := o.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	o.own(dir)
	return nil
}
