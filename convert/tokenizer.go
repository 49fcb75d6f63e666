package convert

import (
	"fmt"

	"github.com/ingotml/ingot/tokenizer"
)

const (
	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
)

// checkTokenizer loads the tokenizer, so that one that cannot be used is found now and not when the model is run.
func (inv *Inventory) checkTokenizer() (warning string, err error) {
	f, ok := inv.file(tokenizerName)
	if !ok {
		return "no " + tokenizerName + ": the model can be run with token ids only", nil
	}
	var config []byte
	if c, ok := inv.file(tokenizerConfigName); ok {
		config = c.Data
	}
	tok, err := tokenizer.Load(f.Data, config)
	if err != nil {
		return "", inv.inFolder(err)
	}
	if vocab := inv.Model.Facts().Vocab; int64(tok.Size()) > vocab {
		warning = fmt.Sprintf("%s has %d tokens, the model only %d: text with the others cannot be run", tokenizerName, tok.Size(), vocab)
	}
	return warning, nil
}
