package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullPrefix begins the names of files in ingest/ that contain the manifests of unfinished pulls.
const pullPrefix = "pull-"

// Pulling records that the blobs of a manifest are being downloaded, and that this process downloads them. It holds the
// store's lock for a moment; while the pull waits for a registry, collections may run. They keep the blobs that are
// present and the parts of others until end is called, and for [Age] if the pull is interrupted. done removes the
// record: the name is set, or the pull gives up.
//
// Which blobs are missing is looked up after Pulling has returned: a collection before it may have removed some.
func Pulling(ctx context.Context, s *store.Store, manifestBytes []byte) (done, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return nil, nil, err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	d := digest.FromBytes(manifestBytes)
	path := s.Path(store.IngestDir, pullPrefix+d.Encoded())
	if err := writeRecord(s, path, manifestBytes); err != nil {
		return nil, nil, fmt.Errorf("record the pull: %w", err)
	}
	// The manifest is no blob yet, so its text is in the note.
	if end, err = use(ctx, s, d, manifestBytes); err != nil {
		return nil, nil, fmt.Errorf("record the pull: %w", err)
	}
	return func() {
		os.Remove(path)
		clearUses(s, d)
		clearParts(ctx, s, blobs)
	}, sync.OnceFunc(end), nil
}

func writeRecord(s *store.Store, path string, manifestBytes []byte) error {
	f, err := s.NewTemp("." + filepath.Base(path) + "-*")
	if err != nil {
		return err
	}
	_, err = f.Write(manifestBytes)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = atomicfile.Rename(f.Name(), path)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
	}
	return err
}

// clearParts removes the remaining ingest files of complete blobs. A process killed right after it renamed a blob
// leaves its lock file and possibly more, which no later pull would open.
func clearParts(ctx context.Context, s *store.Store, blobs []ocispec.Descriptor) {
	entries, err := os.ReadDir(s.Path(store.IngestDir))
	if err != nil {
		return // a later collection removes them
	}
	sizes := map[string]int64{}
	for _, b := range blobs {
		sizes[b.Digest.Encoded()] = b.Size
	}
	for _, e := range entries {
		hex, _, _ := strings.Cut(e.Name(), ".")
		size, ours := sizes[hex]
		d := digest.NewDigestFromEncoded(digest.SHA256, hex)
		if !ours || leftoverKindOf(e) != leftPart || s.CheckBlob(d, size) != nil {
			continue
		}
		delete(sizes, hex)
		p := &Partial{s: s, digest: d, size: size}
		if p.lock, err = lock.Take(ctx, p.path(partLockSuffix), lock.Options{}); err == nil {
			p.Discard()
		}
	}
}
