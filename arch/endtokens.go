package arch

import "errors"

// EndTokens returns the ids in eos_token_id of a config.json or generation_config.json, at the top and in text_config.
// name is the file's, for messages. Import and load both use it.
func EndTokens(name string, data []byte) ([]int32, error) {
	top, text, err := openText(data)
	if err != nil {
		return nil, inFile(name, err)
	}
	ids := top.tokens("eos_token_id", nil)
	if text.nested() {
		ids = append(ids, text.tokens("eos_token_id", nil)...)
	}
	return ids, inFile(name, top.failed())
}

// fileError is an error of a configuration in another file than config.json.
type fileError struct {
	configError
	name string
}

func (e fileError) Error() string { return e.name + ": " + string(e.configError) }

func inFile(name string, err error) error {
	var e configError
	if errors.As(err, &e) {
		return fileError{e, name}
	}
	return err
}
