package manifest

import (
	"context"
	"fmt"
	"maps"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tag adds the name dst for the manifest that src names. An existing dst is replaced atomically. No blob is written.
func (s *Store) Tag(ctx context.Context, src, dst Name) error {
	if err := s.tag(ctx, src, dst); err != nil {
		return fmt.Errorf("tag %s: %w", dst, err)
	}
	return nil
}

func (s *Store) tag(ctx context.Context, src, dst Name) error {
	if dst.Digest != "" {
		return &NameError{Name: dst.String(), Reason: "a name to store under must not have a digest"}
	}
	dst, err := ParseName(dst.String()) // the caller may not have used ParseName
	if err != nil {
		return err
	}
	return s.updateIndex(ctx, func(idx *ocispec.Index) error {
		desc, _, ok := lookup(*idx, src)
		if !ok {
			return notFound(*idx, src)
		}
		desc.Annotations = maps.Clone(desc.Annotations)
		desc.Annotations[ocispec.AnnotationRefName] = dst.String()
		desc.Annotations[annotationModified] = s.now().UTC().Format(time.RFC3339)
		replaceEntry(idx, dst, desc)
		return nil
	})
}
