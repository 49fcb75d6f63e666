package ingest

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ingotml/ingot/atomicfile"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullPrefix begins the names of files in ingest/ that contain the manifests of unfinished pulls.
const pullPrefix = "pull-"

// Pulling records that the blobs of a manifest are being downloaded. Collections keep those already present until done
// is called, or for [Age] if the pull is interrupted. The caller holds the store's lock.
func Pulling(ctx context.Context, s *store.Store, manifestBytes []byte) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return nil, err
	}
	name := pullPrefix + digest.FromBytes(manifestBytes).Encoded()
	path := s.Path(store.IngestDir, name)
	f, err := s.NewTemp("." + name + "-*")
	if err != nil {
		return nil, fmt.Errorf("record the pull: %w", err)
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
		return nil, fmt.Errorf("record the pull: %w", err)
	}
	return func() {
		os.Remove(path)
		clearParts(ctx, s, blobs)
	}, nil
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
