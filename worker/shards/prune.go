package shards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
)

// usedDir has an empty file for each image. Its time says when a group last used the image's parts.
const usedDir = "used"

// Lock keeps [Prune] from removing parts, which the processes of ranks map, until release is called.
func (f *Folder) Lock(ctx context.Context) (release func(), err error) { return f.parts.Lock(ctx) }

// use notes that a group uses the parts of an image.
func (f *Folder) use(image digest.Digest) error {
	path := f.parts.Path(usedDir, image.Encoded())
	now := f.parts.Now()
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(f.parts.Path(usedDir), 0o755); err == nil {
			err = os.WriteFile(path, nil, 0o644)
		}
	}
	return err
}

// PruneOptions are options of [Prune].
type PruneOptions struct {
	DryRun bool // report only; remove nothing
	All    bool // also what was used in the last [ingest.Age]
}

// Pruned are the parts of an image that Prune removes.
type Pruned struct {
	Image digest.Digest
	Bytes int64 // on the disk, without what other images share
}

// Prune removes the parts of images in a worker's store that no group has used for [ingest.Age]. While a worker runs it
// returns a [*lock.BusyError].
func Prune(ctx context.Context, own *store.Store, o PruneOptions) ([]Pruned, error) {
	parts, err := store.OpenExisting(own.Path(Dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrNotStore) {
		return nil, nil // no worker has used this store
	}
	if err != nil {
		return nil, err
	}
	release, err := parts.Locks().Exclusive(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	f := &Folder{own: own, parts: parts}
	stale, kept, err := f.staleImages(o.All)
	if err != nil {
		return nil, err
	}
	var all []Pruned
	for _, image := range stale {
		p, err := f.prune(image, kept, o.DryRun)
		if err != nil {
			return all, fmt.Errorf("prune the parts of %s: %w", image, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// staleImages returns the images that are pruned, sorted, and the blobs of the others.
func (f *Folder) staleImages(all bool) (stale []digest.Digest, kept map[digest.Digest]bool, err error) {
	kept = map[digest.Digest]bool{}
	entries, err := os.ReadDir(f.parts.Path(usedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range entries {
		image := digest.NewDigestFromEncoded(digest.SHA256, e.Name())
		info, err := e.Info()
		if err != nil || !manifest.ValidDigest(image) {
			continue
		}
		if all || f.parts.Now().Sub(info.ModTime()) > ingest.Age {
			stale = append(stale, image)
			continue
		}
		for _, d := range f.blobs(image) {
			kept[d] = true
		}
	}
	slices.SortFunc(stale, func(a, b digest.Digest) int { return strings.Compare(string(a), string(b)) })
	return stale, kept, nil
}

// blobs returns the manifest of an image and its blobs.
func (f *Folder) blobs(image digest.Digest) []digest.Digest {
	list := []digest.Digest{image}
	b, err := f.parts.ReadBlob(image, manifest.MaxManifestSize)
	if err != nil {
		return list
	}
	blobs, err := manifest.Blobs(b)
	if err != nil {
		return list
	}
	for _, d := range blobs {
		list = append(list, d.Digest)
	}
	return list
}

// prune removes an image's blobs but those that are kept, and adds them to these, so that they count once.
func (f *Folder) prune(image digest.Digest, kept map[digest.Digest]bool, dry bool) (p Pruned, err error) {
	p.Image = image
	for _, d := range slices.Backward(f.blobs(image)) { // the manifest last: it names the others
		if kept[d] {
			continue
		}
		kept[d] = true
		info, err := os.Stat(f.parts.BlobPath(d))
		if err == nil {
			p.Bytes += disk.Allocated(info)
		}
		if !dry {
			if err := f.removePart(d); err != nil {
				return p, err
			}
		}
	}
	if dry {
		return p, nil
	}
	return p, os.Remove(f.parts.Path(usedDir, image.Encoded()))
}
