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

// The ollama encoding: a docker manifest of schema 2 whose layers are those that Ollama's engine for safetensors reads
// (github.com/ollama/ollama at fb30760: manifest/layer.go, x/imagegen/manifest, types/model/config.go). Each layer has a type
// of Ollama's, and tensors and JSON files have their name in a field "name" that descriptors of OCI do not have. Libraries of
// OCI drop that field when they write a manifest again, so the names stand in the annotations of the modelpack encoding too,
// with one of its own:
//
//	layer     org.ingotml.mediatype          media type in the modelpack encoding, where another one would be chosen
//
// Files that Ollama has no type for have one of ingot's, which its client fetches and keeps and never reads: all that is not
// JSON, the index over the tensors' files, and chat templates in Jinja, since it takes those of its own type for Go's.
const (
	ollamaPrefix   = "application/vnd.ollama.image."
	ollamaTensor   = ollamaPrefix + "tensor"
	ollamaJSON     = ollamaPrefix + "json"
	ollamaTemplate = ollamaPrefix + "template"
	ollamaModel    = ollamaPrefix + "model"               // GGUF
	ollamaFile     = "application/vnd.ingotml.image.file" // any other

	annotationMediaType = "org.ingotml.mediatype"

	dockerConfig = "application/vnd.docker.container.image.v1+json"
	indexFile    = "model.safetensors.index.json"
)

// ollamaTexts are the kinds that Ollama has types for and no names, and the names that files of them get here.
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
	{ollamaPrefix + "prompt", KindTemplate, "template"}, // what templates were called first
}

// Most bytes of a file that decides how an image is encoded: a template, a configuration.
const maxEncodeRead = 8 << 20

// ollamaLayerJSON is a layer as Ollama's client reads it; it passes over the annotations.
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

// EncodeOllama gives the manifest and the config of an image in the ollama encoding, byte for byte the same for the same
// image. [Decode] gives the image back, with Ollama's media types. read gives the contents of a blob: templates and the files
// that name the model's parser and its draft are looked at. Errors are those of [EncodeModelPack], and read's.
func EncodeOllama(img Image, read func(digest.Digest) ([]byte, error)) (manifest, config []byte, err error) {
	if err := img.check(); err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w: %w", ErrInvalidImage, err)
	}
	m := ollamaManifestJSON{SchemaVersion: 2, MediaType: dockerManifest, Layers: make([]ollamaLayerJSON, len(img.Layers))}
	tensors := false
	for i, l := range img.Layers {
		if m.Layers[i], err = encodeOllamaLayer(l, read); err != nil {
			return nil, nil, fmt.Errorf("encode model image: %s: %w", l.Name, err)
		}
		tensors = tensors || l.Kind == KindTensor
	}
	if !tensors {
		return nil, nil, fmt.Errorf("encode model image: Ollama runs one blob for each tensor, and there is none: %w", ErrInvalidImage)
	}
	facts, err := ollamaConfigOf(img, read)
	if err != nil {
		return nil, nil, fmt.Errorf("encode model image: %w", err)
	}
	if config, err = marshal(facts); err != nil {
		return nil, nil, fmt.Errorf("encode model config: %w", err)
	}
	if len(config) > MaxConfigSize {
		return nil, nil, fmt.Errorf("encode model image: a config of %d bytes, the limit is %d: %w", len(config), MaxConfigSize, ErrTooLarge)
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

// What tells Go's templates from Jinja's: an action that begins with a field, a variable or a keyword, and no statement in
// Jinja's braces.
var (
	jinjaStatement = regexp.MustCompile(`\{%[-+]?\s*[a-z]`)
	goAction       = regexp.MustCompile(`\{\{-?\s*(\.[A-Za-z]|\$|/\*|(if|range|with|end|else|define|template|block|break|continue|json|slice|len|index|eq|ne|lt|le|gt|ge|and|or|not|print|println|printf)\b)`)
)

func isGoTemplate(text []byte) bool { return goAction.Match(text) && !jinjaStatement.Match(text) }

// isOllama goes by the layers' types: the config's is that of container images.
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

// notRun says what an image of Ollama is that is not one of tensors.
func notRun(m parsedManifest) string {
	tensors := false
	for _, l := range m.Layers {
		switch {
		case l.MediaType == ollamaModel:
			return "a GGUF model of Ollama"
		case l.MediaType == ollamaTensor && strings.Contains(l.Name, "/"):
			return "a model of Ollama that makes pictures" // its parts are folders
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
	l := Layer{Kind: KindFile, MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Name: cmp.Or(d.Name, d.Annotations[modelspec.AnnotationFilepath])}
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

// nameTexts gives names to the layers that Ollama has none for. Names differ in more than case.
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
		for taken[strings.ToLower(free)] { // numbers go on where they ended: a manifest may have thousands of such layers
			numbers[name]++
			free = name + "." + strconv.Itoa(numbers[name]+1)
		}
		taken[strings.ToLower(free)] = true
		layers[i].Name = free
	}
}
