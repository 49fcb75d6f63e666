package convert

import (
	"fmt"

	"github.com/ingotml/ingot/tokenizer"
)

const (
	tokenizerName       = "tokenizer.json"
	sentencePieceName   = "tokenizer.model"
	tokenizerConfigName = "tokenizer_config.json"
)

// checkTokenizer loads the tokenizer, so that an unusable one is found at import and not when the model runs.
func (inv *Inventory) checkTokenizer() (warning string, err error) {
	load := tokenizer.Load
	f, ok := inv.file(tokenizerName)
	if !ok {
		load = tokenizer.LoadSentencePiece
		f, ok = inv.file(sentencePieceName)
	}
	if !ok {
		return fmt.Sprintf("neither %s nor %s: the model can be run with token ids only", tokenizerName, sentencePieceName),
			nil
	}
	var config []byte
	if c, ok := inv.file(tokenizerConfigName); ok {
		config = c.Data
	}
	tok, err := load(f.Data, config)
	if err != nil {
		return "", inv.inFolder(err)
	}
	if vocab := inv.Model.Facts().Vocab; int64(tok.Size()) > vocab {
		warning = fmt.Sprintf("%s has %d tokens, the model only %d: text with the other tokens cannot be run",
			f.Name, tok.Size(), vocab)
	}
	return warning, nil
}
