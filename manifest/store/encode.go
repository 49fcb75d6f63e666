package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
)

// Encode returns the manifest of a model in an encoding. If format is empty or the encoding in which the model is
// stored, the manifest is the stored one, byte for byte. Otherwise Encode makes a new manifest that refers to the same
// blobs. config is the manifest's config; a new config is not stored.
func (s *Store) Encode(
	ctx context.Context, e *Entry, format string,
) (mediaType string, manifestBytes, config []byte, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, nil, err
	}
	switch format {
	case "", e.Format:
		m, err := encoding.Parse(e.ManifestBytes)
		if err != nil {
			return "", nil, nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		if config, err = s.ReadBlob(m.Config.Digest, manifest.MaxConfigSize); err != nil {
			return "", nil, nil, fmt.Errorf("config of %s: %w", e.Name, err)
		}
		return cmp.Or(m.MediaType, encoding.MediaType(m.Format)), e.ManifestBytes, config, nil
	case manifest.FormatModelPack:
		manifestBytes, config, err = manifest.EncodeModelPack(e.Image)
	case manifest.FormatOllama:
		read := func(d digest.Digest) ([]byte, error) { return s.ReadBlob(d, ollama.MaxRead) }
		manifestBytes, config, err = ollama.Encode(e.Image, read)
	default:
		err = fmt.Errorf("unknown format %q: use %s or %s", manifest.Clip(format), manifest.FormatModelPack,
			manifest.FormatOllama)
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return encoding.MediaType(format), manifestBytes, config, nil
}

// Copy stores a model under a second name and returns the digest of the new name's manifest. No layer is written; those
// that were not verified since their last change are read. If format is set and differs from the stored encoding, Copy
// writes a new manifest and config. With an empty format it can also copy partial models and manifests of any kind.
func (s *Store) Copy(ctx context.Context, src, dst manifest.Name, format string) (digest.Digest, error) {
	release, err := s.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	raw, err := s.ResolveRaw(ctx, src)
	if err != nil {
		return "", err
	}
	if blobs, err := manifest.Blobs(raw.Bytes); err == nil { // an invalid manifest is PutRaw's to report
		if err := s.VerifyBlobs(ctx, blobs...); err != nil {
			return "", fmt.Errorf("%s: %w", raw.Name, err)
		}
	}
	mediaType, manifestBytes := raw.Descriptor.MediaType, raw.Bytes
	if format != "" {
		e, err := s.Entry(raw)
		if err != nil {
			return "", err
		}
		var config []byte
		if mediaType, manifestBytes, config, err = s.Encode(ctx, e, format); err != nil {
			return "", err
		}
		if _, _, err := s.PutBytes(ctx, config); err != nil {
			return "", err
		}
	}
	return s.PutRaw(ctx, dst, mediaType, manifestBytes, PutOptions{Partial: raw.Partial()})
}

// Partial reports whether the manifest was stored without some of its blobs.
func (r *Raw) Partial() bool { return r.Descriptor.Annotations[index.AnnotationPartial] != "" }

// Entry decodes the manifest. A manifest that is not a model image is a [manifest.ErrUnknownManifest].
func (s *Store) Entry(raw *Raw) (*Entry, error) {
	m, img, err := s.Decode(raw.Bytes)
	if err != nil {
		if errors.Is(err, manifest.ErrBlobMissing) && raw.Partial() {
			err = fmt.Errorf("the model was pulled partially: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", raw.Name, err)
	}
	return &Entry{
		Name: raw.Name, Digest: raw.Descriptor.Digest, Format: m.Format, Image: img, ManifestBytes: raw.Bytes,
	}, nil
}
