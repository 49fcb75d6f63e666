package plan

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/pooling"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/vision"
)

const (
	tokenizerName       = "tokenizer.json"
	sentencePieceName   = "tokenizer.model"
	tokenizerConfigName = "tokenizer_config.json"
)

// checkTokenizer loads the tokenizer, so that an unusable one is found at import and not when the model runs.
func checkTokenizer(src *source.Source) (warning string, err error) {
	config, err := tokenizerConfig(src)
	if err != nil {
		return "", src.Located(err)
	}
	load := tokenizer.Load
	f, ok := src.File(tokenizerName)
	if !ok {
		load = tokenizer.LoadSentencePiece
		f, ok = src.File(sentencePieceName)
	}
	if !ok {
		if _, err := tokens.Make(source.TokenizerFiles(src.Files)); errors.Is(err, tokens.ErrUnknown) {
			return fmt.Sprintf("the model can be run with token ids only: %v, and create the model again", err), nil
		}
		return fmt.Sprintf("neither %s nor %s: the model can be run with token ids only; save the tokenizer with "+
			"transformers (save_pretrained of its AutoTokenizer), which writes %s, and create the "+
			"model again", tokenizerName, sentencePieceName, tokenizerName), nil
	}
	tok, err := load(f.Data, config)
	if err != nil {
		return "", src.Located(err)
	}
	if vocab := src.Model.Facts().Vocab; int64(tok.Size()) > vocab {
		warning = fmt.Sprintf("the tokenizer has %d tokens, the model only %d: text with the other tokens cannot be run",
			tok.Size(), vocab)
	}
	return warning, nil
}

// tokenizerConfig returns the tokenizer's settings, from all files that have any.
func tokenizerConfig(src *source.Source) ([]byte, error) {
	c, _ := src.File(tokenizerConfigName)
	return tokenizer.Settings(c.Data, reader(src))
}

// reader returns a function that reads the source's files, and nil for a missing one.
func reader(src *source.Source) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		f, _ := src.File(name)
		return f.Data, nil
	}
}

// checkVision reads how a model with a vision tower prepares pictures, as the runtime does.
func checkVision(src *source.Source) error {
	m, ok := src.Model.(interface{ Pictures() *config.Pictures })
	if !ok || m.Pictures() == nil {
		return nil
	}
	p := m.Pictures()
	if _, err := vision.New(p.Patch, p.Temporal, p.Merge).ConfiguredBy(reader(src)); err != nil {
		return src.Located(err)
	}
	return nil
}

// checkPooling reads how embeddings are pooled, as the runtime does. A model that generates only loses its embeddings
// if that fails.
func checkPooling(src *source.Source) (warning string, err error) {
	_, err = pooling.Read(reader(src))
	switch {
	case err == nil:
		return "", nil
	case arch.HasHead(src.Model):
		return fmt.Sprintf("%v: the model computes no embeddings", err), nil
	}
	return "", src.Located(fmt.Errorf("%w: %w: the model computes embeddings only, so it must list Transformer, Pooling "+
		"and at most Normalize, with a pooling that ingot has (docs/models.md)", source.ErrSource, err))
}
