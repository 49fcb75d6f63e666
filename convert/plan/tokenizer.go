package plan

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/tokenizer"
)

const (
	tokenizerName       = "tokenizer.json"
	sentencePieceName   = "tokenizer.model"
	tokenizerConfigName = "tokenizer_config.json"
)

// checkTokenizer loads the tokenizer, so that an unusable one is found at import and not when the model runs.
func checkTokenizer(src *source.Source) (warning string, err error) {
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
	var config []byte
	if c, ok := src.File(tokenizerConfigName); ok {
		config = c.Data
	}
	config, err = tokenizer.Settings(config, func(name string) ([]byte, error) {
		f, _ := src.File(name)
		return f.Data, nil
	})
	if err != nil {
		return "", src.Located(err)
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
