package ollama

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The ollama encoding is a Docker manifest of schema 2 with the layers that Ollama's safetensors engine reads
// (github.com/ollama/ollama at fb30760: manifest/layer.go, x/imagegen/manifest, types/model/config.go). Each layer has
// a media type of Ollama's. Descriptors of tensors and JSON files have a field "name", which OCI descriptors do not
// have. OCI libraries drop this field when they rewrite a manifest, so the encoding also has the annotations of the
// modelpack encoding, and one more:
//
//	layer     org.ingotml.mediatype          media type in the modelpack encoding, unless it is the default one
//
// Files for which Ollama has no media type get one of ingot's, which Ollama's client downloads and keeps but does not
// read: files other than JSON, the index of the tensors' files, and chat templates in Jinja, because Ollama parses
// templates of its own type as Go templates.
const (
	mediaPrefix   = "application/vnd.ollama.image."
	mediaJSON     = mediaPrefix + "json"
	mediaTemplate = mediaPrefix + "template"
	mediaFile     = "application/vnd.ingotml.image.file" // other files

	annotationMediaType = "org.ingotml.mediatype"

	dockerConfig = "application/vnd.docker.container.image.v1+json"
	indexFile    = "model.safetensors.index.json"
)

// Media types of layers.
const (
	MediaTensor    = mediaPrefix + "tensor"
	MediaGGUF      = mediaPrefix + "model"
	MediaProjector = mediaPrefix + "projector" // in a GGUF file
	MediaAdapter   = mediaPrefix + "adapter"   // likewise
)

// TextKind returns the kind of a layer that is a text, by its media type; "" for others.
func TextKind(mediaType string) manifest.Kind {
	for _, t := range textTypes {
		if t.mediaType == mediaType {
			return t.kind
		}
	}
	return ""
}

// textTypes lists the kinds that have a media type but no name in Ollama's manifests, and the file names they get
// here.
var textTypes = []struct {
	mediaType string
	kind      manifest.Kind
	name      string
}{
	{mediaPrefix + "license", manifest.KindLicense, "LICENSE"},
	{mediaPrefix + "params", manifest.KindParams, "params.json"},
	{mediaPrefix + "system", manifest.KindSystem, "system"},
	{mediaPrefix + "messages", manifest.KindMessages, "messages.json"},
	{mediaTemplate, manifest.KindTemplate, "template"},
	{mediaPrefix + "prompt", manifest.KindTemplate, "template"}, // an older media type of templates
}

// MaxRead limits the files that an encoder reads, such as templates and configurations, in bytes.
const MaxRead = 8 << 20

// layerJSON is a descriptor in Ollama's format. Ollama's client ignores the annotations.
type layerJSON struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Name        string            `json:"name,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifestDoc struct {
	SchemaVersion int         `json:"schemaVersion"`
	MediaType     string      `json:"mediaType"`
	Config        layerJSON   `json:"config"`
	Layers        []layerJSON `json:"layers"`
}

// Encode returns the manifest and config of an image in the ollama encoding. The result is deterministic.
// [encoding.Decode] returns the same image, with Ollama's media types. read returns the content of a blob; it is called
// for templates and for the files that name the model's parser and describe its draft model. Errors are those of
// [manifest.EncodeModelPack], and those of read.
func Encode(img manifest.Image, read func(digest.Digest) ([]byte, error)) (manifestBytes, config []byte, err error) {
	if err := img.Check(); err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w: %w", manifest.ErrInvalidImage, err)
	}
	m := manifestDoc{
		SchemaVersion: 2, MediaType: manifest.DockerManifest, Layers: make([]layerJSON, len(img.Layers)),
	}
	tensors := false
	for i, l := range img.Layers {
		if m.Layers[i], err = encodeLayer(l, read); err != nil {
			return nil, nil, fmt.Errorf("encode model image: %s: %w", l.Name, err)
		}
		tensors = tensors || l.Kind == manifest.KindTensor
	}
	if !tensors {
		return nil, nil, fmt.Errorf(
			"encode model image: the image has no tensor layers, which Ollama requires: %w", manifest.ErrInvalidImage)
	}
	facts, err := configOf(img, read)
	if err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w", err)
	}
	if config, err = manifest.Marshal(facts); err != nil {
		return nil, nil, fmt.Errorf("encode model config: %w", err)
	}
	if len(config) > manifest.MaxConfigSize {
		return nil, nil, fmt.Errorf("encode model image: a config of %d bytes, the limit is %d: %w",
			len(config), manifest.MaxConfigSize, manifest.ErrTooLarge)
	}
	m.Config = layerJSON{MediaType: dockerConfig, Digest: digest.FromBytes(config), Size: int64(len(config))}
	if manifestBytes, err = manifest.Marshal(m); err != nil {
		return nil, nil, fmt.Errorf("encode model manifest: %w", err)
	}
	if len(manifestBytes) > manifest.MaxManifestSize {
		return nil, nil, fmt.Errorf("encode model image: %d layers make a manifest of %d bytes, the limit is %d: %w",
			len(img.Layers), len(manifestBytes), manifest.MaxManifestSize, manifest.ErrTooLarge)
	}
	return manifestBytes, config, nil
}

func encodeLayer(l manifest.Layer, read func(digest.Digest) ([]byte, error)) (layerJSON, error) {
	mediaType, err := layerMediaType(l, read)
	if err != nil {
		return layerJSON{}, err
	}
	o := layerJSON{MediaType: mediaType, Digest: l.Digest, Size: l.Size, Annotations: map[string]string{}}
	switch {
	case l.Kind == manifest.KindTensor:
		o.Annotations[blob.AnnotationTensor] = l.Name
	case l.Name != "":
		o.Annotations[modelspec.AnnotationFilepath] = l.Name
	}
	switch mediaType {
	case MediaTensor, mediaJSON:
		o.Name = l.Name
	case mediaFile:
		o.Name = l.Name
		if l.Kind != manifest.KindFile {
			o.Annotations[manifest.AnnotationKind] = string(l.Kind)
		}
	}
	chosen := manifest.ModelPackMediaType(manifest.Layer{Kind: l.Kind, Name: l.Name})
	if strings.HasPrefix(l.MediaType, manifest.ModelPackPrefix) && l.MediaType != chosen {
		o.Annotations[annotationMediaType] = l.MediaType
	}
	return o, nil
}

func layerMediaType(l manifest.Layer, read func(digest.Digest) ([]byte, error)) (string, error) {
	switch {
	case l.Kind == manifest.KindTensor:
		return MediaTensor, nil
	case manifest.IsArchive(l.MediaType):
		return mediaFile, nil
	case l.Kind == manifest.KindFile && path.Ext(l.Name) == ".json" && l.Name != indexFile:
		return mediaJSON, nil
	case l.Kind == manifest.KindTemplate:
		text, err := readSmall(l, read)
		if err != nil {
			return "", err
		}
		if !isGoTemplate(text) {
			return mediaFile, nil
		}
		return mediaTemplate, nil
	}
	for _, t := range textTypes {
		if t.kind == l.Kind {
			return t.mediaType, nil
		}
	}
	return mediaFile, nil
}

func readSmall(l manifest.Layer, read func(digest.Digest) ([]byte, error)) ([]byte, error) {
	if l.Size > MaxRead {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d: %w", l.Size, MaxRead, manifest.ErrTooLarge)
	}
	return read(l.Digest)
}

// Go templates contain an action that begins with a field, a variable, a comment or a keyword. Jinja templates contain
// statements in {% %}, which Go templates do not.
var (
	jinjaStatement = regexp.MustCompile(`\{%[-+]?\s*[a-z]`)
	goAction       = regexp.MustCompile(`\{\{-?\s*(\.[A-Za-z]|\$|/\*|(if|range|with|end|else|define|template|block|` +
		`break|continue|json|slice|len|index|eq|ne|lt|le|gt|ge|and|or|not|print|println|printf)\b)`)
)

func isGoTemplate(text []byte) bool { return goAction.Match(text) && !jinjaStatement.Match(text) }

// Recognize identifies the encoding by the layers' media types, because the config's is that of container images.
func Recognize(m manifest.ParsedManifest) bool {
	switch m.MediaType {
	case manifest.DockerManifest, ocispec.MediaTypeImageManifest, "":
	default:
		return false
	}
	if m.Config.MediaType != dockerConfig && m.Config.MediaType != ocispec.MediaTypeImageConfig || m.ArtifactType != "" {
		return false
	}
	return slices.ContainsFunc(m.Layers, func(l manifest.ParsedLayer) bool {
		return strings.HasPrefix(l.MediaType, mediaPrefix)
	})
}

// Unsupported describes an Ollama image of a kind that this program does not support. It returns "" for models
// with one blob per tensor.
func Unsupported(m manifest.ParsedManifest) string {
	tensors := false
	for _, l := range m.Layers {
		switch {
		case l.MediaType == MediaGGUF:
			return "a GGUF model of Ollama"
		case l.MediaType == MediaTensor && strings.Contains(l.Name, "/"):
			return "an image generation model of Ollama" // its tensors are in folders, one per component
		}
		tensors = tensors || l.MediaType == MediaTensor
	}
	if !tensors {
		return "a model of Ollama without tensors"
	}
	return ""
}

// Decode decodes an image from a manifest that [Recognize] accepts, and its config.
func Decode(m manifest.ParsedManifest, config []byte) (manifest.Image, error) {
	var img manifest.Image
	var err error
	if img.Config, err = decodeConfig(config); err != nil {
		return manifest.Image{}, fmt.Errorf("model config: %w: %w", manifest.ErrInvalidManifest, err)
	}
	img.Layers = make([]manifest.Layer, len(m.Layers))
	for i, d := range m.Layers {
		img.Layers[i] = decodeLayer(d)
	}
	nameTexts(img.Layers)
	if err := img.Check(); err != nil {
		return manifest.Image{}, fmt.Errorf("model manifest: %w: %w", manifest.ErrInvalidManifest, err)
	}
	return img, nil
}

func decodeLayer(d manifest.ParsedLayer) manifest.Layer {
	l := manifest.Layer{
		Kind: manifest.KindFile, MediaType: d.MediaType, Digest: d.Digest, Size: d.Size,
		Name: cmp.Or(d.Name, d.Annotations[modelspec.AnnotationFilepath]),
	}
	switch {
	case d.MediaType == MediaTensor:
		l.Kind, l.Name = manifest.KindTensor, cmp.Or(d.Name, d.Annotations[blob.AnnotationTensor])
	case d.MediaType == mediaFile:
		if kind := manifest.Kind(d.Annotations[manifest.AnnotationKind]); kind != "" && kind != manifest.KindTensor {
			l.Kind = kind
		}
	case d.MediaType != mediaJSON:
		for _, t := range textTypes {
			if t.mediaType == d.MediaType {
				l.Kind = t.kind
			}
		}
	}
	if t := d.Annotations[annotationMediaType]; strings.HasPrefix(t, manifest.ModelPackPrefix) {
		l.MediaType = t
	}
	return l
}

// nameTexts names the layers that have no name in Ollama's manifests. The new names are unique regardless of case.
func nameTexts(layers []manifest.Layer) {
	taken, numbers := make(map[string]bool, len(layers)), map[string]int{}
	for _, l := range layers {
		taken[strings.ToLower(l.Path())] = true
	}
	for i, l := range layers {
		if l.Name != "" || l.Kind == manifest.KindTensor || !strings.HasPrefix(l.MediaType, mediaPrefix) {
			continue
		}
		name := strings.TrimPrefix(l.MediaType, mediaPrefix)
		for _, t := range textTypes {
			if t.mediaType == l.MediaType {
				name = t.name
			}
		}
		name = strings.NewReplacer("/", "-", ":", "-", "\\", "-").Replace(name)
		free := name
		// The counter continues where it ended for the last layer: a manifest may have thousands of them.
		for taken[strings.ToLower(free)] {
			numbers[name]++
			free = name + "." + strconv.Itoa(numbers[name]+1)
		}
		taken[strings.ToLower(free)] = true
		layers[i].Name = free
	}
}
