package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ollamaPartial is the name pattern of files being written to Ollama's blobs folder. Ollama deletes files with such
// names if they have not been modified for an hour.
const ollamaPartial = "sha256-ingot-*"

// put writes a manifest atomically. Its temporary file is in blobs/, which Ollama cleans, if that is on the same file
// system.
func (o *OllamaStore) put(name OllamaName, manifest []byte) error {
	path, _ := o.find(name)
	if err := o.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	err := o.putFrom(filepath.Join(o.root, ollamaBlobs), path, manifest)
	if err != nil {
		// blobs/ may be a link to another disk. Ollama looks for manifests only four levels below manifests/, so it ignores
		// the temporary file there.
		err = o.putFrom(filepath.Join(o.root, ollamaManifests), path, manifest)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func (o *OllamaStore) putFrom(dir, path string, manifest []byte) error {
	f, err := os.CreateTemp(dir, ollamaPartial)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(manifest); err != nil {
		return err
	}
	o.own(f.Name())
	return publish(f, 0o644, path)
}

// ownedLike reports whether a file belongs to the owner of the store's folder. A file of another owner must be copied
// instead of linked; see own.
func (o *OllamaStore) ownedLike(file fs.FileInfo) bool {
	root, err := os.Stat(o.root)
	return err == nil && sameOwner(root, file)
}

// own gives a file to the owner of the store's folder, if permitted. Root may write to the store of the Ollama service,
// which runs as another user and must be able to touch and remove what is there.
func (o *OllamaStore) own(path string) {
	if root, err := os.Stat(o.root); err == nil {
		chownLike(path, root)
	}
}

// mkdir creates a folder in the store and its missing parents.
func (o *OllamaStore) mkdir(dir string) error {
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
