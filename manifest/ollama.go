package manifest

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	ollamaPrefix   = "application/vnd.ollama.image."
	ollamaTensor   = ollamaPrefix + "tensor"
	ollamaJSON     = ollamaPrefix + "json"
	ollamaTemplate = ollamaPrefix + "template"
	ollamaModel    = ollamaPrefix + "model"               // GGUF
	ollamaFile     = "application/vnd.ingotml.image.file" // other files

	annotationMediaType = "org.ingotml.mediatype"

	dockerConfig = "application/vnd.docker.container.image.v1+json"
	indexFile    = "model.safetensors.index.json"
)

// ollamaTexts lists the kinds that have a media type but no name in Ollama's manifests, and the file names they get
// here.
var ollamaTexts = []struct {
	mediaType string
	kind      Kind
	name      string
}{
	{ollamaPrefix + "license", KindLicense, "LICENSE"},
	{ollamaPrefix + "params", KindParams, "params.json"},
	{ollamaPrefix + "system", KindSystem, "system"},
	{ollamaPrefix + "messages", KindMessages, "messages.json"},
	{ollamaTemplate, KindTemplate, "template"},
	{ollamaPrefix + "prompt", KindTemplate, "template"}, // an older media type of templates
}

// maxEncodeRead limits the files that an encoder reads, such as templates and configurations, in bytes.
const maxEncodeRead = 8 << 20

// ollamaLayerJSON is a descriptor in Ollama's format. Ollama's client ignores the annotations.
type ollamaLayerJSON struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Name        string            `json:"name,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ollamaManifestJSON struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        ollamaLayerJSON   `json:"config"`
	Layers        []ollamaLayerJSON `json:"layers"`
}

// EncodeOllama returns the manifest and config of an image in the ollama encoding. The result is deterministic.
// [Decode] returns the same image, with Ollama's media types. read returns the content of a blob; it is called for
// templates and for the files that name the model's parser and describe its draft model. Errors are those of
// [EncodeModelPack], and those of read.
func EncodeOllama(img Image, read func(digest.Digest) ([]byte, error)) (manifest, config []byte, err error) {
	if err := img.check(); err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w: %w", ErrInvalidImage, err)
	}
	m := ollamaManifestJSON{
		SchemaVersion: 2, MediaType: dockerManifest, Layers: make([]ollamaLayerJSON, len(img.Layers)),
	}
	tensors := false
	for i, l := range img.Layers {
		if m.Layers[i], err = encodeOllamaLayer(l, read); err != nil {
			return nil, nil, fmt.Errorf("encode model image: %s: %w", l.Name, err)
		}
		tensors = tensors || l.Kind == KindTensor
	}
	if !tensors {
		return nil, nil, fmt.Errorf(
			"encode model image: the image has no tensor layers, which Ollama requires: %w", ErrInvalidImage)
	}
	facts, err := ollamaConfigOf(img, read)
	if err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w", err)
	}
	if config, err = marshal(facts); err != nil {
		return nil, nil, fmt.Errorf("encode model config: %w", err)
	}
	if len(config) > MaxConfigSize {
		return nil, nil, fmt.Errorf("encode model image: a config of %d bytes, the limit is %d: %w",
			len(config), MaxConfigSize, ErrTooLarge)
	}
	m.Config = ollamaLayerJSON{MediaType: dockerConfig, Digest: digest.FromBytes(config), Size: int64(len(config))}
	if manifest, err = marshal(m); err != nil {
		return nil, nil, fmt.Errorf("encode model manifest: %w", err)
	}
	if len(manifest) > MaxManifestSize {
		return nil, nil, fmt.Errorf("encode model image: %d layers make a manifest of %d bytes, the limit is %d: %w",
			len(img.Layers), len(manifest), MaxManifestSize, ErrTooLarge)
	}
	return manifest, config, nil
}

func encodeOllamaLayer(l Layer, read func(digest.Digest) ([]byte, error)) (ollamaLayerJSON, error) {
	mediaType, err := ollamaMediaType(l, read)
	if err != nil {
		return ollamaLayerJSON{}, err
	}
	o := ollamaLayerJSON{MediaType: mediaType, Digest: l.Digest, Size: l.Size, Annotations: map[string]string{}}
	switch {
	case l.Kind == KindTensor:
		o.Annotations[annotationTensor] = l.Name
	case l.Name != "":
		o.Annotations[modelspec.AnnotationFilepath] = l.Name
	}
	switch mediaType {
	case ollamaTensor, ollamaJSON:
		o.Name = l.Name
	case ollamaFile:
		o.Name = l.Name
		if l.Kind != KindFile {
			o.Annotations[annotationKind] = string(l.Kind)
		}
	}
	chosen := modelPackMediaType(Layer{Kind: l.Kind, Name: l.Name})
	if strings.HasPrefix(l.MediaType, modelPackPrefix) && l.MediaType != chosen {
		o.Annotations[annotationMediaType] = l.MediaType
	}
	return o, nil
}

func ollamaMediaType(l Layer, read func(digest.Digest) ([]byte, error)) (string, error) {
	switch {
	case l.Kind == KindTensor:
		return ollamaTensor, nil
	case isArchive(l.MediaType):
		return ollamaFile, nil
	case l.Kind == KindFile && path.Ext(l.Name) == ".json" && l.Name != indexFile:
		return ollamaJSON, nil
	case l.Kind == KindTemplate:
		text, err := readSmall(l, read)
		if err != nil {
			return "", err
		}
		if !isGoTemplate(text) {
			return ollamaFile, nil
		}
		return ollamaTemplate, nil
	}
	for _, t := range ollamaTexts {
		if t.kind == l.Kind {
			return t.mediaType, nil
		}
	}
	return ollamaFile, nil
}

func readSmall(l Layer, read func(digest.Digest) ([]byte, error)) ([]byte, error) {
	if l.Size > maxEncodeRead {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d: %w", l.Size, maxEncodeRead, ErrTooLarge)
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

// isOllama identifies the encoding by the layers' media types, because the config's is that of container images.
func isOllama(m parsedManifest) bool {
	switch m.MediaType {
	case dockerManifest, ocispec.MediaTypeImageManifest, "":
	default:
		return false
	}
	if m.Config.MediaType != dockerConfig && m.Config.MediaType != ocispec.MediaTypeImageConfig || m.ArtifactType != "" {
		return false
	}
	return slices.ContainsFunc(m.Layers, func(l parsedLayer) bool { return strings.HasPrefix(l.MediaType, ollamaPrefix) })
}

// unsupportedOllama describes an Ollama image of a kind that this program does not support. It returns "" for models
// with one blob per tensor.
func unsupportedOllama(m parsedManifest) string {
	tensors := false
	for _, l := range m.Layers {
		switch {
		case l.MediaType == ollamaModel:
			return "a GGUF model of Ollama"
		case l.MediaType == ollamaTensor && strings.Contains(l.Name, "/"):
			return "an image generation model of Ollama" // its tensors are in folders, one per component
		}
		tensors = tensors || l.MediaType == ollamaTensor
	}
	if !tensors {
		return "a model of Ollama without tensors"
	}
	return ""
}

func decodeOllama(m parsedManifest, config []byte) (Image, error) {
	var img Image
	var err error
	if img.Config, err = decodeOllamaConfig(config); err != nil {
		return Image{}, fmt.Errorf("model config: %w: %w", ErrInvalidManifest, err)
	}
	img.Layers = make([]Layer, len(m.Layers))
	for i, d := range m.Layers {
		img.Layers[i] = decodeOllamaLayer(d)
	}
	nameTexts(img.Layers)
	if err := img.check(); err != nil {
		return Image{}, fmt.Errorf("model manifest: %w: %w", ErrInvalidManifest, err)
	}
	return img, nil
}

func decodeOllamaLayer(d parsedLayer) Layer {
	l := Layer{
		Kind: KindFile, MediaType: d.MediaType, Digest: d.Digest, Size: d.Size,
		Name: cmp.Or(d.Name, d.Annotations[modelspec.AnnotationFilepath]),
	}
	switch {
	case d.MediaType == ollamaTensor:
		l.Kind, l.Name = KindTensor, cmp.Or(d.Name, d.Annotations[annotationTensor])
	case d.MediaType == ollamaFile:
		if kind := Kind(d.Annotations[annotationKind]); kind != "" && kind != KindTensor {
			l.Kind = kind
		}
	case d.MediaType != ollamaJSON:
		for _, t := range ollamaTexts {
			if t.mediaType == d.MediaType {
				l.Kind = t.kind
			}
		}
	}
	if t := d.Annotations[annotationMediaType]; strings.HasPrefix(t, modelPackPrefix) {
		l.MediaType = t
	}
	return l
}

// nameTexts names the layers that have no name in Ollama's manifests. The new names are unique regardless of case.
func nameTexts(layers []Layer) {
	taken, numbers := make(map[string]bool, len(layers)), map[string]int{}
	for _, l := range layers {
		taken[strings.ToLower(l.path())] = true
	}
	for i, l := range layers {
		if l.Name != "" || l.Kind == KindTensor || !strings.HasPrefix(l.MediaType, ollamaPrefix) {
			continue
		}
		name := strings.TrimPrefix(l.MediaType, ollamaPrefix)
		for _, t := range ollamaTexts {
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
