package manifest

import (
	"context"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
)

// pullPrefix begins the names of the files in ingest/ that hold the manifests of unfinished pulls.
const pullPrefix = "pull-"

// Pulling says that the blobs of a manifest are being fetched: until done is called, and for [IngestAge] after a run that was
// interrupted, collections keep those that are here. The caller holds the store's lock.
func (s *Store) Pulling(ctx context.Context, manifest []byte) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := Blobs(manifest); err != nil {
		return nil, err
	}
	name := pullPrefix + digest.FromBytes(manifest).Encoded()
	path := s.path(ingestDir, name)
	f, err := s.newTemp("." + name + "-*")
	if err != nil {
		return nil, fmt.Errorf("note the pull: %w", err)
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
		return nil, fmt.Errorf("note the pull: %w", err)
	}
	return func() { os.Remove(path) }, nil
}
