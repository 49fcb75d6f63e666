package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// GGUF is an image of Ollama whose weights are a GGUF file.
type GGUF struct {
	Model     ocispec.Descriptor
	Texts     []GGUFText // in the order of the manifest
	Projector bool       // it has a projector for pictures, which is another GGUF file
}

// GGUFText is a layer beside the weights.
type GGUFText struct {
	Kind manifest.Kind // template, system prompt, parameters, messages or license
	ocispec.Descriptor
}

// ParseGGUF parses the manifest of an image whose weights are a GGUF file. It returns nil for every other manifest. An
// image with adapters or with several files is a [manifest.ErrUnknownManifest].
func ParseGGUF(manifestBytes []byte) (*GGUF, error) {
	var m manifest.ParsedManifest
	if json.Unmarshal(manifestBytes, &m) != nil || !Recognize(m) {
		return nil, nil //nolint:nilnil // another manifest, whose errors are others'
	}
	g, models := &GGUF{}, 0
	for _, l := range m.Layers {
		switch l.MediaType {
		case mediaGGUF:
			g.Model = l.Descriptor
			models++
		case mediaPrefix + "projector":
			g.Projector = true
		case mediaPrefix + "adapter":
			return nil, &manifest.UnknownManifestError{What: "a model of Ollama with an adapter in a GGUF file"}
		default:
			for _, t := range textTypes {
				if t.mediaType == l.MediaType {
					g.Texts = append(g.Texts, GGUFText{t.kind, l.Descriptor})
				}
			}
		}
	}
	switch {
	case models == 0:
		return nil, nil //nolint:nilnil // as above
	case models > 1:
		return nil, &manifest.UnknownManifestError{What: fmt.Sprintf("a model of Ollama in %d GGUF files", models)}
	}
	return g, nil
}
