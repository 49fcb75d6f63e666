package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/tokenizer"
)

// maxFile bounds the files of an image that are read into memory.
const maxFile = 256 << 20

// files reads the small files of an image.
type files struct {
	store *store.Store
	image manifest.Image
}

// read returns the contents of a file; nil if the image does not have it.
func (f files) read(kind manifest.Kind, name string) ([]byte, error) {
	l, ok := f.image.Find(kind, name)
	if !ok {
		return nil, nil
	}
	b, err := f.store.ReadBlob(l.Digest, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return b, nil
}

// config parses config.json.
func (f files) config() (arch.Model, error) { return f.configOf("config.json") }

func (f files) configOf(name string) (arch.Model, error) {
	b, err := f.read(manifest.KindFile, name)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("%s is not in the image: %w", name, ErrImage)
	}
	return arch.Detect(b)
}

// tokenizer returns nil if the image has none.
func (f files) tokenizer() (*tokenizer.Tokenizer, error) {
	load := tokenizer.Load
	b, err := f.read(manifest.KindFile, "tokenizer.json")
	if err == nil && b == nil {
		load = tokenizer.LoadSentencePiece
		b, err = f.read(manifest.KindFile, "tokenizer.model")
	}
	if err != nil || b == nil {
		return nil, err
	}
	c, err := f.read(manifest.KindFile, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	return load(b, c)
}

// eos returns the tokens that end a text: those of generation_config.json, else of config.json, else of the tokenizer.
func (f files) eos(tok *tokenizer.Tokenizer) ([]int32, error) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		b, err := f.read(manifest.KindFile, name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		var c struct {
			EOS tokenIDs `json:"eos_token_id"`
		}
		if err := json.Unmarshal(b, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(c.EOS) > 0 {
			return c.EOS, nil
		}
	}
	if tok != nil {
		if id, ok := tok.EOS(); ok {
			return []int32{id}, nil
		}
	}
	return nil, nil
}

// tokenIDs is an id or a list of ids.
type tokenIDs []int32

func (t *tokenIDs) UnmarshalJSON(b []byte) error {
	var one *int32
	if json.Unmarshal(b, &one) == nil {
		if one != nil {
			*t = tokenIDs{*one}
		}
		return nil
	}
	var many []int32
	if err := json.Unmarshal(b, &many); err != nil {
		return errors.New("eos_token_id is neither an id nor a list of ids")
	}
	*t = many
	return nil
}

// tensorLayers returns the tensor blobs of the image's model, or of its draft, sorted by name.
func (f files) tensorLayers(draft bool) []manifest.Layer {
	var layers []manifest.Layer
	for _, l := range f.image.Layers {
		if l.Kind == manifest.KindTensor && blob.IsDraft(l.Name) == draft {
			layers = append(layers, l)
		}
	}
	slices.SortFunc(layers, func(a, b manifest.Layer) int { return strings.Compare(a.Name, b.Name) })
	return layers
}

// hasTemplate reports whether the image has a chat template, in a file of its own or in the tokenizer's configuration.
func (f files) hasTemplate() (bool, error) {
	for _, l := range f.image.Layers {
		if l.Kind == manifest.KindTemplate || l.Name == "chat_template.jinja" || l.Name == "chat_template.json" {
			return true, nil
		}
	}
	b, err := f.read(manifest.KindFile, "tokenizer_config.json")
	if err != nil || b == nil {
		return false, err
	}
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return false, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	return len(c.Template) > 0 && string(c.Template) != "null", nil
}
