package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
)

// usingPrefix begins the names of the lock files in ingest/ of processes that use an image. The hex digits of its
// manifest's digest and a random suffix follow.
const usingPrefix = "using-"

// Use keeps the blobs of an image from collections until release is called or the process ends. It does not wait for a
// collection: the image stays only if the index lists its manifest after Use has returned, since a collection may have
// read the index before. See [Resolve].
func Use(ctx context.Context, s *store.Store, d digest.Digest) (release func(), err error) {
	return use(ctx, s, d, nil)
}

// use is Use of a manifest that may not be a blob yet: manifestBytes is then its text.
func use(ctx context.Context, s *store.Store, d digest.Digest, manifestBytes []byte) (release func(), err error) {
	if err := os.MkdirAll(s.Path(store.IngestDir), 0o755); err != nil { // layouts made by other tools lack this folder
		return nil, err
	}
	path := s.Path(store.IngestDir, usingPrefix+d.Encoded()+"-"+strings.ToLower(rand.Text()))
	l, err := lock.Take(ctx, path, lock.Options{})
	if err != nil {
		return nil, err
	}
	if len(manifestBytes) > 0 {
		if err := writeFile(path, manifestBytes, 0o644); err != nil {
			lock.Drop(l)
			return nil, err
		}
	}
	return func() { lock.Drop(l) }, nil
}

// Used lists the blobs that processes use or download, of some leftovers.
func Used(s *store.Store, list []Leftover) (map[digest.Digest]bool, error) {
	used := map[digest.Digest]bool{}
	for _, l := range list {
		if l.Kind != LeftUse || !IsUsed(s, l) {
			continue
		}
		blobs, err := LeftoverBlobs(s, l)
		if err != nil {
			return nil, err
		}
		for _, d := range blobs {
			used[d] = true
		}
	}
	return used, nil
}

// Resolve finds the manifest of a name with the rules of [store.Store.Resolve], and keeps its blobs from collections
// until release is called. use is [Use], or counts the users of a process.
//
// While a collection runs, others may remove manifests from the index and give those in it more names, but add none:
// that takes the store's lock. So one that the index lists after Use was also in what the collection has read.
func Resolve(
	ctx context.Context, s *store.Store, name manifest.Name, use func(context.Context, digest.Digest) (func(), error),
) (found manifest.Name, d digest.Digest, release func(), err error) {
	found, d, err = s.Locate(ctx, name)
	for err == nil {
		held := d
		if release, err = use(ctx, d); err != nil {
			if ctx.Err() != nil {
				return found, "", nil, ctx.Err()
			}
			return found, d, func() {}, nil // a store that cannot be written has no collections
		}
		if found, d, err = s.Locate(ctx, name); err == nil && d == held {
			return found, d, release, nil
		}
		release() // the name was moved or removed in between
	}
	return found, "", nil, err
}

// clearUses removes the notes of processes that were killed while they used an image.
func clearUses(s *store.Store, d digest.Digest) {
	entries, err := os.ReadDir(s.Path(store.IngestDir))
	if err != nil {
		return // a later collection removes them
	}
	for _, e := range entries {
		path, of := s.Path(store.IngestDir, e.Name()), strings.HasPrefix(e.Name(), usingPrefix+d.Encoded())
		if of && !isLocked(path) {
			os.Remove(path) // of a process that has not locked it yet: it tries again
		}
	}
}

// IsUsed reports whether a process uses the image.
func IsUsed(s *store.Store, l Leftover) bool { return isLocked(s.Path(store.IngestDir, l.Name)) }

// isLocked reports whether a process holds a lock file. It does not create one.
func isLocked(path string) bool {
	l := flock.New(path, flock.SetFlag(os.O_RDONLY|place.NonBlocking))
	free, err := l.TryLock()
	if free {
		l.Unlock()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false // its holder has just ended, or the file was deleted by hand
	}
	return !free
}

// usedImage returns the digest in the name of a lock file of [Use].
func usedImage(name string) digest.Digest {
	hex, _, _ := strings.Cut(strings.TrimPrefix(name, usingPrefix), "-")
	return digest.NewDigestFromEncoded(digest.SHA256, hex)
}
