package manifest

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullPrefix begins the names of files in ingest/ that contain the manifests of unfinished pulls.
const pullPrefix = "pull-"

// Pulling records that the blobs of a manifest are being downloaded. Collections keep those already present until done
// is called, or for [IngestAge] if the pull is interrupted. The caller holds the store's lock.
func (s *Store) Pulling(ctx context.Context, manifest []byte) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	blobs, err := Blobs(manifest)
	if err != nil {
		return nil, err
	}
	name := pullPrefix + digest.FromBytes(manifest).Encoded()
	path := s.path(ingestDir, name)
	f, err := s.newTemp("." + name + "-*")
	if err != nil {
		return nil, fmt.Errorf("record the pull: %w", err)
	}
	_, err = f.Write(manifest)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("record the pull: %w", err)
	}
	return func() {
		os.Remove(path)
		s.clearParts(ctx, blobs)
	}, nil
}

// clearParts removes the remaining ingest files of complete blobs. A process killed right after it renamed a blob
// leaves its lock file and possibly more, which no later pull would open.
func (s *Store) clearParts(ctx context.Context, blobs []ocispec.Descriptor) {
	entries, err := os.ReadDir(s.path(ingestDir))
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
		if !ours || leftoverKindOf(e) != leftPart || s.checkBlob(d, size) != nil {
			continue
		}
		delete(sizes, hex)
		p := &Partial{s: s, digest: d, size: size}
		if p.lock, err = takeLock(ctx, p.path(partLockSuffix), nil); err == nil {
			p.Discard()
		}
	}
}
