package processor

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/compiled"
)

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
	b, err := f.Store.ReadBlob(l.Digest, pyjson.MostBytes(name))
	if err == nil {
		err = pyjson.Bound(name, b)
	}
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
	for _, source := range []struct {
		name string
		load func(string, string, func() ([]byte, error), []byte) (*tokenizer.Tokenizer, error)
	}{{"tokenizer.json", compiled.Load}, {"tokenizer.model", compiled.LoadSentencePiece}} {
		if l, ok := f.Image.Find(manifest.KindFile, source.name); ok {
			read := func() ([]byte, error) { return f.read(manifest.KindFile, source.name) }
			return source.load(compiled.Dir(), l.Digest.Encoded(), read, c)
		}
	}
	return nil, nil
}

// EOS returns the tokens that end a text: all that generation_config.json, config.json and the tokenizer name, in that
// order. Often the first names only the base model's end of a text, and the tokenizer the end of a turn.
func (f Files) EOS(tok *tokenizer.Tokenizer) ([]int32, error) {
	var ids []int32
	for _, name := range []string{"generation_config.json", "config.json"} {
		b, err := f.read(manifest.KindFile, name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		named, err := config.EndTokens(name, b)
		if err != nil {
			return nil, err
		}
		ids = append(ids, named...)
	}
	if tok != nil {
		if id, ok := tok.EOS(); ok {
			ids = append(ids, id)
		}
	}
	return distinct(ids), nil
}

// distinct returns the first of equal ids each, in their order.
func distinct(ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
