package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Raw is a stored manifest of any kind, byte for byte.
type Raw struct {
	Name       manifest.Name // as in the index, with its tag
	Descriptor ocispec.Descriptor
	Bytes      []byte
}

// ResolveRaw finds a manifest by name like [Store.Resolve], but accepts manifests of any kind.
func (s *Store) ResolveRaw(ctx context.Context, name manifest.Name) (*Raw, error) {
	var raw *Raw
	err := s.find(ctx, name, func(desc ocispec.Descriptor, found manifest.Name) error {
		b, err := s.ReadBlob(desc.Digest, manifest.MaxManifestSize)
		if err != nil {
			return fmt.Errorf("manifest of %s: %w", found, err)
		}
		raw = &Raw{Name: found, Descriptor: desc, Bytes: b}
		return nil
	})
	return raw, err
}

// find looks up a name and calls read with its index entry. If the blob is missing because the name was replaced and
// the old manifest collected since the index was read, it tries again.
func (s *Store) find(ctx context.Context, name manifest.Name,
	read func(desc ocispec.Descriptor, found manifest.Name) error) error {
	var last digest.Digest
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		idx, err := s.ReadIndex()
		if err != nil {
			return err
		}
		desc, found, ok := index.Lookup(idx, name)
		if !ok {
			return index.NotFound(idx, name)
		}
		err = read(desc, found)
		if !errors.Is(err, manifest.ErrBlobMissing) || desc.Digest == last {
			return err
		}
		last = desc.Digest
	}
}

// PutOptions are options of [Store.PutRaw].
type PutOptions struct {
	Partial bool // blobs may be absent; the index entry is then marked as partial
}

// PutRaw stores a manifest of any kind that [manifest.CheckType] accepts under a name, byte for byte. The blobs that it
// refers to must be in the store, unless the options allow otherwise. A manifest in a known encoding must be valid. Its
// media type is its own mediaType, or the argument if it has none. An existing name is replaced atomically. The caller
// holds [Store.Lock] from the first blob on.
func (s *Store) PutRaw(
	ctx context.Context, name manifest.Name, mediaType string, manifestBytes []byte, opts PutOptions,
) (digest.Digest, error) {
	d, err := s.putRaw(ctx, name, mediaType, manifestBytes, opts)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", name, err)
	}
	return d, nil
}

func (s *Store) putRaw(
	ctx context.Context, name manifest.Name, mediaType string, manifestBytes []byte, opts PutOptions,
) (digest.Digest, error) {
	name, err := nameToStore(name)
	if err != nil {
		return "", err
	}
	mediaType, err = manifest.CheckType(mediaType, manifestBytes)
	if err != nil {
		return "", err
	}
	if _, err := manifest.Blobs(manifestBytes); err != nil {
		return "", err
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	desc, err := s.Describe(name, mediaType, manifestBytes, opts)
	if err != nil {
		return "", err
	}
	d, err := s.putManifest(ctx, manifestBytes)
	if err != nil {
		return "", err
	}
	return d, s.setEntry(ctx, name, desc)
}

// Describe returns the index entry of a manifest of any kind whose blobs are in the store, as for [Store.PutRaw].
func (s *Store) Describe(
	name manifest.Name, mediaType string, manifestBytes []byte, opts PutOptions,
) (desc ocispec.Descriptor, err error) {
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return desc, err
	}
	size, absent := int64(len(manifestBytes)), 0
	for _, b := range blobs {
		err := s.CheckBlob(b.Digest, b.Size)
		switch {
		case err == nil:
			size += b.Size
		case opts.Partial && errors.Is(err, manifest.ErrBlobMissing):
			absent++
		default:
			return desc, err
		}
	}
	m, img, err := s.Decode(manifestBytes)
	if err != nil && !errors.Is(err, manifest.ErrUnknownManifest) &&
		!(opts.Partial && errors.Is(err, manifest.ErrBlobMissing)) {
		return desc, err
	}
	desc = ocispec.Descriptor{MediaType: mediaType, ArtifactType: m.ArtifactType,
		Digest: digest.FromBytes(manifestBytes), Size: int64(len(manifestBytes))}
	index.Describe(&desc, name, size, img.Config.ModelType, s.now())
	if absent > 0 {
		desc.Annotations[index.AnnotationPartial] = fmt.Sprint(absent)
	}
	return desc, nil
}

// Decode decodes a manifest whose config is in the store. The parsed manifest is also valid with an error.
func (s *Store) Decode(manifestBytes []byte) (manifest.ParsedManifest, manifest.Image, error) {
	m, err := encoding.Parse(manifestBytes)
	if err != nil {
		return m, manifest.Image{}, err
	}
	config, err := s.ReadBlob(m.Config.Digest, manifest.MaxConfigSize)
	if err != nil {
		return m, manifest.Image{}, fmt.Errorf("config: %w", err)
	}
	img, err := encoding.Decode(manifestBytes, config)
	return m, img, err
}
