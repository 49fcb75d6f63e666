package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest/blob"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The modelpack encoding is an OCI image manifest as specified by CNCF model-spec v0.0.7 (docs/spec.md,
// docs/annotations.md, docs/config.md), with raw (unarchived) layers. It adds ingot's own annotations:
//
//	layer     org.ingotml.tensor             name of the logical tensor
//	layer     org.ingotml.kind               kind of a layer that is neither a tensor nor a plain file
//	manifest  org.ingotml.model.type         this and the following: facts that the config's schema has no field for
//	manifest  org.ingotml.parameters         exact number of parameters; the schema's paramSize is rounded
//	manifest  org.ingotml.capabilities       comma-separated
//	manifest  org.ingotml.context.length
//	manifest  org.ingotml.embedding.length
const (
	AnnotationKind            = "org.ingotml.kind"
	AnnotationModelType       = "org.ingotml.model.type"
	annotationParams          = "org.ingotml.parameters"
	annotationCapabilities    = "org.ingotml.capabilities"
	annotationContextLength   = "org.ingotml.context.length"
	annotationEmbeddingLength = "org.ingotml.embedding.length"
)

// ModelPackPrefix begins the media types of all layers in the encoding.
const ModelPackPrefix = "application/vnd.cncf.model."

// EncodeModelPack returns the manifest and config of an image in the modelpack encoding. The result is deterministic.
// [encoding.Decode] returns the same image, with empty media types filled in. Errors match [ErrInvalidImage], or
// [ErrTooLarge] if the manifest or config exceeds the size that registries accept.
func EncodeModelPack(img Image) (manifest, config []byte, err error) {
	if err := img.Check(); err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w: %w", ErrInvalidImage, err)
	}
	m := ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: modelspec.ArtifactTypeModelManifest,
		Layers:       make([]ocispec.Descriptor, len(img.Layers)),
		Annotations:  modelPackAnnotations(img.Config),
	}
	diffIDs := make([]digest.Digest, len(img.Layers))
	for i, l := range img.Layers {
		if m.Layers[i], err = modelPackLayer(l); err != nil {
			return nil, nil, fmt.Errorf("encode model image: layer %d: %w: %w", i, ErrInvalidImage, err)
		}
		diffIDs[i] = l.Digest // digest of the unpacked content, which for a raw layer is the blob's digest
	}
	if config, err = Marshal(modelPackConfig(img.Config, diffIDs)); err != nil {
		return nil, nil, fmt.Errorf("encode model config: %w", err)
	}
	if len(config) > MaxConfigSize {
		return nil, nil, fmt.Errorf("encode model image: %d layers make a config of %d bytes, the limit is %d: %w",
			len(img.Layers), len(config), MaxConfigSize, ErrTooLarge)
	}
	m.Config = ocispec.Descriptor{
		MediaType: modelspec.MediaTypeModelConfig,
		Digest:    digest.FromBytes(config),
		Size:      int64(len(config)),
	}
	if manifest, err = Marshal(m); err != nil {
		return nil, nil, fmt.Errorf("encode model manifest: %w", err)
	}
	if len(manifest) > MaxManifestSize {
		return nil, nil, fmt.Errorf("encode model image: %d layers make a manifest of %d bytes, the limit is %d: %w",
			len(img.Layers), len(manifest), MaxManifestSize, ErrTooLarge)
	}
	return manifest, config, nil
}

// modelPackLayer returns the descriptor of a layer. Its file attributes are constants, because model-spec requires them
// (docs/spec.md, "File Attributes") and requires reproducible manifests ("Reproducibility").
func modelPackLayer(l Layer) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: ModelPackMediaType(l), Digest: l.Digest, Size: l.Size}
	p := l.Path()
	if p == "" {
		if IsArchive(l.MediaType) {
			return d, nil
		}
		return d, fmt.Errorf("a %s without a path", l.Kind)
	}
	metadata, err := Marshal(modelspec.FileMetadata{
		Name:     path.Base(p),
		Mode:     0o644,
		Size:     l.Size,
		ModTime:  time.Unix(0, 0).UTC(),
		Typeflag: '0', // tar's type flag for a regular file
	})
	if err != nil {
		return d, err
	}
	d.Annotations = map[string]string{
		modelspec.AnnotationFilepath:     p,
		modelspec.AnnotationFileMetadata: string(metadata),
	}
	switch l.Kind {
	case KindTensor:
		d.Annotations[blob.AnnotationTensor] = l.Name
	case KindFile:
	default:
		d.Annotations[AnnotationKind] = string(l.Kind)
	}
	return d, nil
}

// ModelPackMediaType returns the media type of a layer in the modelpack encoding.
func ModelPackMediaType(l Layer) string {
	if strings.HasPrefix(l.MediaType, ModelPackPrefix) {
		return l.MediaType
	}
	switch l.Kind {
	case KindTensor:
		return modelspec.MediaTypeModelWeightRaw
	case KindLicense:
		return modelspec.MediaTypeModelDocRaw
	case KindFile:
		switch base := strings.ToLower(path.Base(l.Name)); {
		case path.Ext(base) == ".safetensors":
			return modelspec.MediaTypeModelWeightRaw
		case path.Ext(base) == ".md" || hasAnyPrefix(base, "license", "licence", "copying", "notice", "readme"):
			return modelspec.MediaTypeModelDocRaw
		}
	}
	return modelspec.MediaTypeModelWeightConfigRaw
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func modelPackAnnotations(c Config) map[string]string {
	a := map[string]string{}
	if c.ModelType != "" {
		a[AnnotationModelType] = c.ModelType
	}
	if len(c.Capabilities) > 0 {
		a[annotationCapabilities] = strings.Join(c.Capabilities, ",")
	}
	for key, n := range map[string]int64{
		annotationParams:          c.Params,
		annotationContextLength:   c.ContextLength,
		annotationEmbeddingLength: c.EmbeddingLength,
	} {
		if n != 0 {
			a[key] = strconv.FormatInt(n, 10)
		}
	}
	return a
}

// IsModelPack identifies the encoding by the config's media type. model-spec also requires the artifact type, so it may
// be absent but must not differ.
func IsModelPack(m ocispec.Manifest) bool {
	return m.Config.MediaType == modelspec.MediaTypeModelConfig &&
		(m.ArtifactType == modelspec.ArtifactTypeModelManifest || m.ArtifactType == "") &&
		(m.MediaType == ocispec.MediaTypeImageManifest || m.MediaType == "")
}

// DecodeModelPack decodes an image from a manifest that [IsModelPack] accepts, and its config.
func DecodeModelPack(m ParsedManifest, config []byte) (Image, error) {
	var img Image
	var err error
	if img.Config, err = decodeModelPackConfig(config, m.Annotations); err != nil {
		return Image{}, fmt.Errorf("model config: %w: %w", ErrInvalidManifest, err)
	}
	img.Layers = make([]Layer, len(m.Layers))
	for i, d := range m.Layers {
		l := Layer{
			Kind:      KindFile,
			Name:      d.Annotations[modelspec.AnnotationFilepath],
			MediaType: d.MediaType,
			Digest:    d.Digest,
			Size:      d.Size,
		}
		if tensor, ok := d.Annotations[blob.AnnotationTensor]; ok {
			l.Kind, l.Name = KindTensor, tensor
		} else if kind, ok := d.Annotations[AnnotationKind]; ok {
			l.Kind = Kind(kind)
			if l.Kind == KindTensor {
				l.Name = "" // a tensor's name is not its path; check rejects the empty name
			}
		}
		img.Layers[i] = l
	}
	if err := img.Check(); err != nil {
		return Image{}, fmt.Errorf("model manifest: %w: %w", ErrInvalidManifest, err)
	}
	return img, nil
}

// Marshal returns compact JSON: struct fields in order, map keys sorted, no HTML escaping, no final newline.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
