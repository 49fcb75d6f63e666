package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Encode gives the manifest of a model in an encoding: as it was stored, byte for byte, when that is the encoding or when
// format is empty, else made anew over the same blobs. config is the blob that the manifest names as its config; a new one is
// not stored.
func (s *Store) Encode(ctx context.Context, e *Entry, format string) (mediaType string, manifest, config []byte, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, nil, err
	}
	switch format {
	case "", e.Format:
		m, err := parseManifest(e.ManifestBytes)
		if err != nil {
			return "", nil, nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		if config, err = s.ReadBlob(m.Config.Digest, MaxConfigSize); err != nil {
			return "", nil, nil, fmt.Errorf("config of %s: %w", e.Name, err)
		}
		return cmp.Or(m.MediaType, mediaTypeOf(m.format)), e.ManifestBytes, config, nil
	case FormatModelPack:
		manifest, config, err = EncodeModelPack(e.Image)
	case FormatOllama:
		manifest, config, err = EncodeOllama(e.Image, func(d digest.Digest) ([]byte, error) { return s.ReadBlob(d, maxEncodeRead) })
	default:
		err = fmt.Errorf("no format %q; there are %s and %s", clip(format), FormatModelPack, FormatOllama)
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return mediaTypeOf(format), manifest, config, nil
}

// mediaTypeOf is the type of an encoding's manifests.
func mediaTypeOf(format string) string {
	if format == FormatOllama {
		return dockerManifest
	}
	return ocispec.MediaTypeImageManifest
}

// Copy gives what a name names a second name, and the digest of that one's manifest. Nothing is written again but, where a
// format is asked for and the manifest is in another one, the manifest and its config. With an empty format, and under a name
// with blobs left out, any manifest can be copied, whatever it is.
func (s *Store) Copy(ctx context.Context, src, dst Name, format string) (digest.Digest, error) {
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	raw, err := s.ResolveRaw(ctx, src)
	if err != nil {
		return "", err
	}
	mediaType, manifest := raw.Descriptor.MediaType, raw.Bytes
	if format != "" {
		e, err := s.Entry(raw)
		if err != nil {
			return "", err
		}
		var config []byte
		if mediaType, manifest, config, err = s.Encode(ctx, e, format); err != nil {
			return "", err
		}
		if _, _, err := s.PutBytes(ctx, config); err != nil {
			return "", err
		}
	}
	return s.PutRaw(ctx, dst, mediaType, manifest, PutOptions{Partial: raw.Partial()})
}

// Partial reports whether some of the blobs were left out on purpose.
func (r *Raw) Partial() bool { return r.Descriptor.Annotations[annotationPartial] != "" }

// Entry decodes what was found. A manifest that is not a model image is an [ErrUnknownManifest].
func (s *Store) Entry(raw *Raw) (*Entry, error) {
	m, img, err := s.decodeRaw(raw.Bytes)
	if err != nil {
		if errors.Is(err, ErrBlobMissing) && raw.Partial() {
			err = fmt.Errorf("it was pulled in part: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", raw.Name, err)
	}
	return &Entry{Name: raw.Name, Digest: raw.Descriptor.Digest, Format: m.format, Image: img, ManifestBytes: raw.Bytes}, nil
}
