package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// folder is a layout that an image is added to.
type folder struct {
	ref   Ref
	image *registry.Image
	work  *workplace
	info  fs.FileInfo // of the folder
	made  bool        // the folder did not exist

	mu    sync.Mutex
	added []string // blobs
}

// openFolder prepares the folder of a layout, which is created if it does not exist.
func openFolder(ctx context.Context, ref Ref, image *registry.Image, warn func(string)) (*folder, error) {
	fail := func(err error) (*folder, error) { return nil, fmt.Errorf("%s: %w", ref.place(), full(ref.Path, err)) }
	if info, err := os.Stat(ref.Path); err == nil && !info.IsDir() {
		return fail(fmt.Errorf("it is a file; use %s%s for an archive: %w", ArchiveScheme, ref.Path, ErrLayout))
	}
	if err := checkFolder(ref.Path); err != nil {
		return fail(err)
	}
	_, err := os.Stat(ref.Path)
	t := &folder{ref: ref, image: image, made: errors.Is(err, fs.ErrNotExist)}
	if err := os.MkdirAll(filepath.Join(ref.Path, store.BlobsDir), 0o755); err != nil {
		return fail(err)
	}
	t.work, err = openWork(ctx, filepath.Join(ref.Path, workName), func() {
		warn(fmt.Sprintf("waiting for another process that writes to %s", ref.place()))
	})
	if err != nil {
		return fail(err)
	}
	if t.info, err = os.Stat(ref.Path); err == nil {
		_, err = t.current()
	}
	if err != nil {
		t.close()
		return fail(err)
	}
	return t, nil
}

// checkFolder refuses a folder that is something else than a layout, or a model store.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	if there[lock.IndexFile] && there[store.IngestDir] {
		return fmt.Errorf("it is a model store; copy to a name in it instead: %w", ErrLayout)
	}
	if there[ocispec.ImageLayoutFile] {
		return nil
	}
	for name := range there {
		switch name {
		case ocispec.ImageBlobsDir, ocispec.ImageIndexFile, workName: // of a copy that was interrupted
		case "lost+found", ".DS_Store":
		default:
			return fmt.Errorf("it contains %s but no %s; choose an empty folder: %w",
				manifest.Clip(name), ocispec.ImageLayoutFile, ErrLayout)
		}
	}
	return nil
}

// current reads the layout's index. That of a new layout is empty.
func (t *folder) current() (index, error) {
	if _, err := os.Stat(filepath.Join(t.ref.Path, ocispec.ImageLayoutFile)); errors.Is(err, fs.ErrNotExist) {
		return emptyIndex(), nil
	}
	l := &Layout{ref: Ref{Path: t.ref.Path}}
	err := l.open(context.Background())
	return l.index, err
}

func (t *folder) close() {
	t.work.close()
	if t.made { // folders that have nothing in them
		for _, dir := range []string{store.BlobsDir, ocispec.ImageBlobsDir, "."} {
			os.Remove(filepath.Join(t.ref.Path, dir))
		}
	}
}

// explain removes the blobs of this copy from a full disk. After other errors they stay for the next copy.
func (t *folder) explain(err error) error {
	if err = full(t.ref.Path, err); errors.Is(err, manifest.ErrNoSpace) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, path := range t.added {
			os.Remove(path)
		}
	}
	return err
}

func (t *folder) blobPath(d ocispec.Descriptor) string {
	return filepath.Join(t.ref.Path, store.BlobsDir, d.Digest.Encoded())
}

// has hashes a blob of the layout, which another program may have written. One that is damaged is replaced.
func (t *folder) has(ctx context.Context, d ocispec.Descriptor, progress func(int64)) (bool, error) {
	info, err := os.Lstat(t.blobPath(d))
	if err != nil || !info.Mode().IsRegular() || info.Size() != d.Size {
		return false, nil
	}
	f, err := os.Open(t.blobPath(d))
	if err != nil {
		return false, nil
	}
	defer f.Close()
	err = pour(ctx, io.Discard, f, d, progress)
	if errors.Is(err, remote.ErrDigest) {
		return false, nil
	}
	return err == nil, err
}

func (t *folder) put(ctx context.Context, d ocispec.Descriptor, c *content, progress func(int64)) (way, error) {
	f, err := t.work.temp()
	if err != nil {
		return copied, err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	defer f.Close()
	path := t.blobPath(d)
	_, before := os.Lstat(path)
	how, err := publish(ctx, f, path, c, d, t.info, progress)
	if err == nil && errors.Is(before, fs.ErrNotExist) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.added = append(t.added, path)
	}
	return how, err
}

func (t *folder) finish(ctx context.Context) (string, error) {
	for _, m := range documents(t.image) {
		d := ocispec.Descriptor{Digest: m.Digest, Size: int64(len(m.Bytes))}
		if there, err := t.has(ctx, d, func(int64) {}); err != nil {
			return "", err
		} else if !there {
			if err := t.work.write(t.blobPath(d), m.Bytes); err != nil {
				return "", err
			}
		}
	}
	for _, dir := range []string{store.BlobsDir, ocispec.ImageBlobsDir, "."} {
		if err := disk.SyncDir(filepath.Join(t.ref.Path, dir)); err != nil {
			return "", err
		}
	}
	index, err := t.current() // once more: a program that takes no lock may have changed it
	if err != nil {
		return "", err
	}
	root, referrers := entriesOf(t.image, t.ref.Name)
	index.add(root, referrers)
	b, err := index.marshal()
	if err != nil {
		return "", err
	}
	if err := t.work.write(filepath.Join(t.ref.Path, ocispec.ImageIndexFile), b); err != nil {
		return "", err
	}
	version := filepath.Join(t.ref.Path, ocispec.ImageLayoutFile)
	if _, err := os.Stat(version); errors.Is(err, fs.ErrNotExist) {
		return t.ref.String(), t.work.write(version, layoutFile)
	}
	return t.ref.String(), nil
}

// layoutFile is the content of an oci-layout file.
var layoutFile = []byte(`{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`)
