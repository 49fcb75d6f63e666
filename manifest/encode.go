package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
)

// Encode returns the manifest of a model in an encoding. If format is empty or the encoding in which the model is
// stored, the manifest is the stored one, byte for byte. Otherwise Encode makes a new manifest that refers to the same
// blobs. config is the manifest's config; a new config is not stored.
func (s *Store) Encode(
	ctx context.Context, e *Entry, format string,
) (mediaType string, manifest, config []byte, err error) {
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
		read := func(d digest.Digest) ([]byte, error) { return s.ReadBlob(d, maxEncodeRead) }
		manifest, config, err = EncodeOllama(e.Image, read)
	default:
		err = fmt.Errorf("unknown format %q: use %s or %s", clip(format), FormatModelPack, FormatOllama)
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return mediaTypeOf(format), manifest, config, nil
}

// Copy stores a model under a second name and returns the digest of the new name's manifest. No layer is written. If
// format is set and differs from the stored encoding, Copy writes a new manifest and config. With an empty format it
// can also copy partial models and manifests of any kind.
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

// Partial reports whether the manifest was stored without some of its blobs.
func (r *Raw) Partial() bool { return r.Descriptor.Annotations[annotationPartial] != "" }

// Entry decodes the manifest. A manifest that is not a model image is an [ErrUnknownManifest].
func (s *Store) Entry(raw *Raw) (*Entry, error) {
	m, img, err := s.decodeRaw(raw.Bytes)
	if err != nil {
		if errors.Is(err, ErrBlobMissing) && raw.Partial() {
			err = fmt.Errorf("the model was pulled partially: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", raw.Name, err)
	}
	return &Entry{
		Name: raw.Name, Digest: raw.Descriptor.Digest, Format: m.format, Image: img, ManifestBytes: raw.Bytes,
	}, nil
}
