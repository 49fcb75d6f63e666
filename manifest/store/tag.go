package store

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/index"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tag adds the name dst for the manifest that src names. An existing dst is replaced atomically. No blob is written.
func (s *Store) Tag(ctx context.Context, src, dst manifest.Name) error {
	if err := s.tag(ctx, src, dst); err != nil {
		return fmt.Errorf("tag %s: %w", dst, err)
	}
	return nil
}

func (s *Store) tag(ctx context.Context, src, dst manifest.Name) error {
	dst, err := nameToStore(dst)
	if err != nil {
		return err
	}
	return s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		desc, _, ok := index.Lookup(*idx, src)
		if !ok {
			return index.NotFound(*idx, src)
		}
		desc.Annotations = maps.Clone(desc.Annotations)
		desc.Annotations[ocispec.AnnotationRefName] = dst.String()
		desc.Annotations[index.AnnotationModified] = s.now().UTC().Format(time.RFC3339)
		index.Replace(idx, dst, desc)
		return nil
	})
}
