package provenance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Attach stores the provenance record as a referrer of the image, together with the records of its source images. It is
// called just before the image gets its name. If it gets none, the next collection removes both.
func (m Made) Attach(ctx context.Context, store *store.Store) error {
	encoded, _, err := manifest.EncodeModelPack(m.Written.Image)
	if err != nil {
		return err
	}
	image := digest.FromBytes(encoded)
	if m.From.Image() == image {
		return nil // the image is identical to its source
	}
	record, err := m.record(ctx)
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	data, err := manifest.Marshal(record)
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	own, size, err := store.PutBytes(ctx, data)
	if err != nil {
		return err
	}
	layers := []ocispec.Descriptor{recordLayer(own, size, image)}
	for _, src := range []*source.Source{m.From, m.Draft} {
		if src == nil || !src.IsImage() {
			continue
		}
		earlier, err := recordLayers(ctx, store, src.Image())
		if err != nil {
			return err
		}
		for _, l := range earlier {
			same := func(have ocispec.Descriptor) bool {
				return have.Digest == l.Digest && have.Annotations[annotationImage] == l.Annotations[annotationImage]
			}
			if !slices.ContainsFunc(layers, same) && len(layers) < maxRecords {
				layers = append(layers, l)
			}
		}
	}
	_, err = store.Attach(ctx, manifest.Artifact{
		Type:    Type,
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: image, Size: int64(len(encoded))},
		Layers:  layers,
	})
	return err
}

// annotationImage is the annotation of a layer with the digest of the image that its record describes.
const annotationImage = "org.ingotml.subject"

// maxRecords bounds the records of source images that an image carries.
const maxRecords = 64

func recordLayer(d digest.Digest, size int64, image digest.Digest) ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: Type, Digest: d, Size: size,
		Annotations: map[string]string{
			ocispec.AnnotationTitle: "provenance-" + image.Encoded()[:12] + ".json",
			annotationImage:         string(image),
		},
	}
}

// recordLayers lists the layers of an image's provenance records, the image's own first.
func recordLayers(ctx context.Context, store Reader, image digest.Digest) ([]ocispec.Descriptor, error) {
	list, err := store.Referrers(ctx, image, Type)
	if err != nil {
		return nil, err
	}
	var own, earlier []ocispec.Descriptor
	for _, d := range list {
		b, err := store.ReadBlob(d.Digest, manifest.MaxManifestSize)
		if err != nil {
			return nil, err
		}
		var doc ocispec.Manifest
		if err := json.Unmarshal(b, &doc); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: %w", d.Digest, manifest.ErrInvalidManifest, err)
		}
		for _, l := range doc.Layers {
			switch {
			case l.MediaType != Type: // added by someone else
			case l.Annotations[annotationImage] == string(image):
				own = append(own, l)
			default:
				earlier = append(earlier, l)
			}
		}
	}
	return append(own, earlier...), nil
}

// ImageRecord is a provenance record and the image that it describes.
type ImageRecord struct {
	Image digest.Digest `json:"image"`
	Record
}

// Reader is a [store.Store], or a [store.Listing] if the records of many images are read.
type Reader interface {
	Referrers(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error)
	ReadBlob(d digest.Digest, limit int64) ([]byte, error)
}

// Read returns the provenance records in the store: those of the image, then those of the images that it was
// made from. An image that was pulled from a registry has none, because a pull does not fetch referrers.
func Read(ctx context.Context, store Reader, image digest.Digest) ([]ImageRecord, error) {
	layers, err := recordLayers(ctx, store, image)
	if err != nil {
		return nil, err
	}
	var out []ImageRecord
	for _, l := range layers {
		r := ImageRecord{Image: digest.Digest(l.Annotations[annotationImage])}
		if err := r.Image.Validate(); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: it does not name the image that it describes",
				l.Digest, manifest.ErrInvalidManifest)
		}
		data, err := store.ReadBlob(l.Digest, settings.MaxFile)
		if err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
		if err := json.Unmarshal(data, &r.Record); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: %w", l.Digest, manifest.ErrInvalidManifest, err)
		}
		out = append(out, r)
	}
	return out, nil
}
