package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxIndexSize limits index.json. It is enough for about 100,000 models.
const maxIndexSize = 64 << 20

// Summary is what the index says about a model.
type Summary struct {
	Name      manifest.Name
	Digest    digest.Digest
	Size      int64     // bytes of the blobs, manifest and config included; 0 if another tool wrote the entry
	ModelType string    // empty if unknown
	Modified  time.Time // when the name was last set; zero if another tool wrote the entry
	Partial   int       // number of blobs that a partial pull left out
	Shared    int64     // bytes that removing the name would not free; only collect.Share sets it
}

// List returns the models in the store, sorted by name. It reads only the index.
func (s *Store) List(ctx context.Context) ([]Summary, error) {
	l, err := s.Listing(ctx)
	if err != nil {
		return nil, err
	}
	return l.Models, nil
}

// setEntry points a name at a manifest.
func (s *Store) setEntry(ctx context.Context, name manifest.Name, desc ocispec.Descriptor) error {
	return s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		index.Replace(idx, name, desc)
		return nil
	})
}

// ReadIndex reads index.json. It needs no lock, because the file is replaced atomically. An index that does not say
// which models the store has is a [manifest.ErrIndex].
func (s *Store) ReadIndex() (ocispec.Index, error) {
	idx, err := s.readIndex()
	if err != nil {
		return ocispec.Index{}, fmt.Errorf("read model index %s: %w", s.Path(ocispec.ImageIndexFile), err)
	}
	return idx, nil
}

func (s *Store) readIndex() (ocispec.Index, error) {
	b, err := disk.ReadLimited(s.Path(ocispec.ImageIndexFile), maxIndexSize)
	if err != nil {
		return ocispec.Index{}, indexFault(err)
	}
	idx, err := index.Parse(b)
	if err != nil {
		err = fmt.Errorf("%v: %w", err, manifest.ErrIndex)
	}
	return idx, err
}

// indexFault makes an error that lies in the file an ErrIndex. Others are of the system, such as its permissions.
func indexFault(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it does not exist: %w", manifest.ErrIndex)
	case errors.Is(err, manifest.ErrTooLarge):
		return fmt.Errorf("it has more than %d bytes: %w", maxIndexSize, manifest.ErrIndex)
	case errors.Is(err, place.ErrNotRegular):
		return fmt.Errorf("%v: %w", err, manifest.ErrIndex)
	}
	return err
}

// Existing returns a name as the store spells it: as it is if the store has it, or else in the case of an entry that
// differs from it in case only. APIs in which names have no case use it; other names do have one.
func (s *Store) Existing(name manifest.Name) (manifest.Name, error) {
	idx, err := s.ReadIndex()
	if err != nil {
		return name, err
	}
	return index.Existing(idx, name), nil
}

// UpdateIndex changes the index under its lock. If change returns an error, the index is not written.
func (s *Store) UpdateIndex(ctx context.Context, change func(*ocispec.Index) error) error {
	unlock, err := s.locks.Index(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	idx, err := s.ReadIndex()
	if err != nil {
		return err
	}
	if err := change(&idx); err != nil {
		return err
	}
	return s.writeIndex(idx)
}

// ReplaceIndex writes an index in the place of one that cannot be read.
func (s *Store) ReplaceIndex(ctx context.Context, idx ocispec.Index) error {
	unlock, err := s.locks.Index(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.writeIndex(idx)
}

func (s *Store) writeIndex(idx ocispec.Index) error {
	idx.Versioned = specs.Versioned{SchemaVersion: 2}
	idx.MediaType = ocispec.MediaTypeImageIndex
	if idx.Manifests == nil {
		idx.Manifests = []ocispec.Descriptor{} // the specification requires an array
	}
	b, err := manifest.Marshal(idx)
	if err != nil {
		return fmt.Errorf("write model index: %w", err)
	}
	if len(b) > maxIndexSize {
		return fmt.Errorf("write model index: %d bytes, the limit is %d: %w", len(b), maxIndexSize, manifest.ErrTooLarge)
	}
	return s.replaceFile(ocispec.ImageIndexFile, b)
}
