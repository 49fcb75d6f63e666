package processor

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/limits/jsonread"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/compiled"
)

// maxFile bounds the files of an image that are read into memory.
const maxFile = 256 << 20

// Files reads the small files of an image.
type Files struct {
	Store *store.Store
	Image manifest.Image
}

// read returns the contents of a file; nil if the image does not have it.
func (f Files) read(kind manifest.Kind, name string) ([]byte, error) {
	l, ok := f.Image.Find(kind, name)
	if !ok {
		return nil, nil
	}
	b, err := f.Store.ReadBlob(l.Digest, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return b, nil
}

// Config parses config.json.
func (f Files) Config() (arch.Model, error) { return f.ConfigOf("config.json") }

// ConfigOf parses a configuration by its name.
func (f Files) ConfigOf(name string) (arch.Model, error) {
	b, err := f.read(manifest.KindFile, name)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("%s is not in the image: %w", name, runtime.ErrImage)
	}
	return arch.Detect(b)
}

// Tokenizer reads the tokenizer; nil if the image has none.
func (f Files) Tokenizer() (*tokenizer.Tokenizer, error) {
	c, err := f.read(manifest.KindFile, "tokenizer_config.json")
	if err == nil {
		c, err = tokenizer.Settings(c, func(name string) ([]byte, error) { return f.read(manifest.KindFile, name) })
	}
	if err != nil {
		return nil, err
	}
	if l, ok := f.Image.Find(manifest.KindFile, "tokenizer.json"); ok {
		read := func() ([]byte, error) { return f.read(manifest.KindFile, "tokenizer.json") }
		return compiled.Load(compiled.Dir(), l.Digest.Encoded(), read, c)
	}
	b, err := f.read(manifest.KindFile, "tokenizer.model")
	if err != nil || b == nil {
		return nil, err
	}
	return tokenizer.LoadSentencePiece(b, c)
}

// EOS returns the tokens that end a text: those of generation_config.json, else of config.json, else of the tokenizer.
func (f Files) EOS(tok *tokenizer.Tokenizer) ([]int32, error) {
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
		if err := json.Unmarshal(arch.PlainJSON(b), &c); err != nil {
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

// hasTemplate reports whether the image has a chat template, in a file of its own or in the tokenizer's configuration.
func (f Files) hasTemplate() (bool, error) {
	for _, l := range f.Image.Layers {
		if l.Kind == manifest.KindTemplate || l.Name == "chat_template.jinja" || l.Name == "chat_template.json" {
			return true, nil
		}
	}
	b, err := f.read(manifest.KindFile, "tokenizer_config.json")
	if err != nil || b == nil {
		return false, err
	}
	o := jsonread.Options{Nesting: limits.TokenizerNesting, ReplaceSurrogates: true}
	template, err := jsonread.Member(b, "chat_template", o)
	if err != nil {
		return false, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	return len(template) > 0 && string(template) != "null", nil
}
