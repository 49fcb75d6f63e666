package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Ollama is Ollama's model store (manifest/paths.go in Ollama):
//
//	manifests/HOST/NAMESPACE/MODEL/TAG   manifests; there is no index
//	manifests-v2/...                     the same in newer releases, as links to blobs; takes precedence
//	blobs/sha256-HEX                     blobs, mode 0644
//
// Ollama takes no locks. When it starts, it deletes unreferenced blobs and other files in blobs/ that have not been
// modified for an hour.
type Ollama struct{ root string }

const (
	manifestsDir   = "manifests"
	manifestsV2Dir = "manifests-v2"
	blobsDir       = "blobs"
	hostV2         = "ollama.com" // name of ollamaHost in manifests-v2
	listType       = "application/vnd.ollama.manifest.list.v2+json"
)

// serviceRoot is the store of the service that Ollama's installer creates on Linux.
var serviceRoot = "/usr/share/ollama/.ollama/models"

// Open returns the store at root. An empty root means $OLLAMA_MODELS, or else .ollama/models in the user's home
// folder, or else the store of the Linux service if only that exists. OpenOllama does not read or create the store.
func Open(root string) (*Ollama, error) {
	if root == "" {
		root = os.Getenv("OLLAMA_MODELS")
	}
	if root == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("open Ollama's store: no home folder (set OLLAMA_MODELS): %w", err)
		}
		root = filepath.Join(home, ".ollama", "models")
		if !isDir(root) && isDir(serviceRoot) {
			root = serviceRoot
		}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open Ollama's store: %w", err)
	}
	return &Ollama{root}, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Root returns the absolute path of the store.
func (o *Ollama) Root() string { return o.root }

func (o *Ollama) blobPath(d digest.Digest) string {
	return filepath.Join(o.root, blobsDir, "sha256-"+d.Encoded())
}

// find returns the path of a name's manifest, or the path for a new one if it does not exist. Ollama's names are
// case-insensitive.
func (o *Ollama) find(name ollama.Name) (path string, found bool) {
	v2 := name
	if v2.Host == ollama.DefaultHost {
		v2.Host = hostV2
	}
	if path, found = foldedPath(filepath.Join(o.root, manifestsV2Dir), v2.Parts()); found {
		return path, true
	}
	return foldedPath(filepath.Join(o.root, manifestsDir), name.Parts())
}

// foldedPath resolves parts below dir case-insensitively. Parts that exist in another case are spelled as on disk.
func foldedPath(dir string, parts []string) (path string, found bool) {
	path, found = dir, true
	for _, part := range parts {
		next := filepath.Join(path, part)
		if _, err := os.Lstat(next); err != nil {
			found = false
			entries, _ := os.ReadDir(path)
			for _, e := range entries {
				if strings.EqualFold(e.Name(), part) {
					next, found = filepath.Join(path, e.Name()), true
					break
				}
			}
		}
		path = next
	}
	return path, found
}

// manifest reads a name's manifest. If that is a manifest list, it returns the one for safetensors.
func (o *Ollama) manifest(name ollama.Name) ([]byte, error) {
	path, found := o.find(name)
	if !found {
		return nil, fmt.Errorf("%s is not in Ollama's store %s (set OLLAMA_MODELS to use another folder): %w",
			name, o.root, manifest.ErrNotFound)
	}
	b, err := disk.ReadLimited(path, manifest.MaxManifestSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var list struct {
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	if json.Unmarshal(b, &list) != nil || list.MediaType != listType {
		return b, nil
	}
	for _, raw := range list.Manifests {
		var child struct {
			Digest digest.Digest `json:"digest"`
			Runner string        `json:"runner"`
			Format string        `json:"format"`
		}
		switch {
		case json.Unmarshal(raw, &child) != nil || child.Format != "safetensors" && child.Runner != "mlx":
			continue
		case child.Digest == "":
			return raw, nil
		}
		return o.readBlob(child.Digest)
	}
	return o.firstOf(name, list.Manifests)
}

// firstOf returns the first manifest of a list.
func (o *Ollama) firstOf(name ollama.Name, list []json.RawMessage) ([]byte, error) {
	var child struct {
		Digest digest.Digest `json:"digest"`
	}
	switch {
	case len(list) == 0 || json.Unmarshal(list[0], &child) != nil:
		return nil, fmt.Errorf("%s: %w", name, &manifest.UnknownManifestError{MediaType: listType})
	case child.Digest == "":
		return list[0], nil
	}
	return o.readBlob(child.Digest)
}

// Files returns a model whose weights are a GGUF file; nil for others. One that cannot be imported is a
// [manifest.ErrUnknownManifest].
func (o *Ollama) Files(name ollama.Name) (*foreign.Image, error) {
	b, err := o.manifest(name)
	if err != nil {
		return nil, err
	}
	img, err := foreign.Parse(b, nil)
	if err == nil && img.Tensors() {
		return nil, nil //nolint:nilnil // it needs no import
	}
	if err == nil {
		err = img.Model()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return img, nil
}

// OpenBlob opens a blob.
func (o *Ollama) OpenBlob(d digest.Digest) (*os.File, error) { return place.Open(o.blobPath(d)) }

// ReadBlob reads a small blob and verifies it.
func (o *Ollama) ReadBlob(d digest.Digest) ([]byte, error) { return o.readBlob(d) }

// Verify reads a whole blob and compares its digest.
func (o *Ollama) Verify(ctx context.Context, d ocispec.Descriptor) error {
	if !manifest.ValidDigest(d.Digest) {
		return fmt.Errorf("digest %q is not a sha256 digest: %w", manifest.Clip(string(d.Digest)),
			manifest.ErrInvalidManifest)
	}
	f, err := place.Open(o.blobPath(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blob %s of Ollama: %w", d.Digest, manifest.ErrBlobMissing)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return (&transfer{}).hash(ctx, io.Discard, f, d.Digest)
}

// readBlob reads a manifest that is stored as a blob.
func (o *Ollama) readBlob(d digest.Digest) ([]byte, error) {
	if !manifest.ValidDigest(d) {
		return nil, fmt.Errorf("digest %q is not a sha256 digest: %w", manifest.Clip(string(d)), manifest.ErrInvalidManifest)
	}
	b, err := disk.ReadLimited(o.blobPath(d), manifest.MaxManifestSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s of Ollama: %w", d, manifest.ErrBlobMissing)
	}
	if err == nil && digest.FromBytes(b) != d {
		return nil, manifest.Corrupt(d, digest.FromBytes(b))
	}
	return b, err
}
