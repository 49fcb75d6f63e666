package ollama

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/opencontainers/go-digest"
)

// minVersion is the first Ollama version that runs safetensors models. Ollama's own create writes the same value.
const minVersion = "0.19.0"

// recordFile is the file in which an image records the parser and renderer that its creator chose (package convert).
const recordFile = "ingot.json"

// configJSON is the config of Ollama's images (types/model/config.go, ConfigV2) with the additional field "ingot" for
// facts that Ollama has no fields for. Ollama ignores it.
type configJSON struct {
	ModelFormat     string     `json:"model_format"`
	ModelFamily     string     `json:"model_family"`
	ModelFamilies   []string   `json:"model_families"`
	ModelType       string     `json:"model_type"` // number of parameters, for display
	FileType        string     `json:"file_type"`  // quantization
	Renderer        string     `json:"renderer,omitempty"`
	Parser          string     `json:"parser,omitempty"`
	Requires        string     `json:"requires,omitempty"`
	Capabilities    []string   `json:"capabilities,omitempty"`
	ContextLength   int64      `json:"context_length,omitempty"`
	EmbeddingLength int64      `json:"embedding_length,omitempty"`
	Draft           *draftJSON `json:"draft,omitempty"`
	Ingot           *factsJSON `json:"ingot,omitempty"`
}

type draftJSON struct {
	ModelFormat  string `json:"model_format,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	TensorPrefix string `json:"tensor_prefix,omitempty"`
	Config       string `json:"config,omitempty"`
}

// factsJSON contains the facts of Config that Ollama's fields round or lack.
type factsJSON struct {
	Name         string   `json:"name,omitempty"`
	Family       string   `json:"family,omitempty"`
	Licenses     []string `json:"licenses,omitempty"`
	Architecture string   `json:"architecture,omitempty"`
	ModelType    string   `json:"model_type,omitempty"`
	Format       string   `json:"format,omitempty"`
	Quantization string   `json:"quantization,omitempty"`
	DType        string   `json:"dtype,omitempty"`
	Params       int64    `json:"parameters,omitempty"`
}

func configOf(img manifest.Image, read func(digest.Digest) ([]byte, error)) (configJSON, error) {
	c := img.Config
	o := configJSON{
		ModelFormat:     "safetensors",
		ModelFamily:     c.ModelType,
		ModelFamilies:   []string{},
		ModelType:       strings.ToUpper(manifest.FormatParamSize(c.Params)),
		FileType:        c.Quantization,
		Requires:        minVersion,
		Capabilities:    c.Capabilities,
		ContextLength:   c.ContextLength,
		EmbeddingLength: c.EmbeddingLength,
		Ingot: &factsJSON{
			Name: c.Name, Family: c.Family, Licenses: c.Licenses, Architecture: c.Architecture, ModelType: c.ModelType,
			Format: c.Format, Quantization: c.Quantization, DType: c.DType, Params: c.Params,
		},
	}
	if c.ModelType != "" {
		o.ModelFamilies = append(o.ModelFamilies, c.ModelType)
	}
	var record struct{ Parser, Renderer string }
	if _, err := readJSON(img, recordFile, read, &record); err != nil {
		return o, err
	}
	o.Parser, o.Renderer = parserName(record.Parser), rendererName(record.Renderer)
	var draft struct {
		Architectures []string `json:"architectures"`
		ModelType     string   `json:"model_type"`
	}
	found, err := readJSON(img, blob.DraftConfig, read, &draft)
	if err != nil || !found {
		return o, err
	}
	o.Draft = &draftJSON{
		ModelFormat: "safetensors", Architecture: draft.ModelType, TensorPrefix: blob.DraftPrefix, Config: blob.DraftConfig,
	}
	if len(draft.Architectures) > 0 {
		o.Draft.Architecture = draft.Architectures[0]
	}
	return o, nil
}

// readJSON decodes a file of the image. found is false if the image does not have it.
func readJSON(
	img manifest.Image, name string, read func(digest.Digest) ([]byte, error), into any,
) (found bool, err error) {
	l, ok := img.Find(manifest.KindFile, name)
	if !ok {
		return false, nil
	}
	b, err := readSmall(l, read)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, fmt.Errorf("%s: %v: %w", name, err, manifest.ErrInvalidImage)
	}
	return true, nil
}

// parserName and ollamaRenderer return Ollama's name of a parser and a renderer.
func parserName(name string) string {
	if name == "nemotron-3" {
		return "nemotron-3-nano"
	}
	return name
}

func rendererName(name string) string {
	switch name {
	case "nemotron-3":
		return "nemotron-3-nano"
	case "deepseek3":
		return "deepseek3.1" // Ollama's only DeepSeek renderer
	}
	return name
}

func decodeConfig(b []byte) (manifest.Config, error) {
	var o configJSON
	if err := json.Unmarshal(b, &o); err != nil {
		return manifest.Config{}, err
	}
	c := manifest.Config{
		ModelType:       o.ModelFamily,
		Format:          o.ModelFormat,
		Quantization:    o.FileType,
		Params:          manifest.ParseParamSize(o.ModelType),
		ContextLength:   o.ContextLength,
		EmbeddingLength: o.EmbeddingLength,
	}
	if len(o.Capabilities) > 0 {
		c.Capabilities = o.Capabilities
	}
	if f := o.Ingot; f != nil {
		c.Name, c.Family, c.Architecture, c.ModelType, c.Format = f.Name, f.Family, f.Architecture, f.ModelType, f.Format
		c.Quantization, c.DType, c.Params = f.Quantization, f.DType, f.Params
		if len(f.Licenses) > 0 {
			c.Licenses = f.Licenses
		}
	}
	return c, nil
}
