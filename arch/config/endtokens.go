package config

import (
	"errors"
	"slices"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// EndTokens returns the ids in eos_token_id of a config.json or generation_config.json, at the top and in text_config.
// name is the file's, for messages. Import and load both use it.
func EndTokens(name string, data []byte) ([]int32, error) {
	top, text, err := OpenText(data)
	if err != nil {
		return nil, inFile(name, err)
	}
	ids := top.Tokens("eos_token_id", nil)
	if text.Nested() {
		ids = append(ids, text.Tokens("eos_token_id", nil)...)
	}
	return ids, inFile(name, top.Failed())
}

// SuppressedTokens returns the ids in suppress_tokens of a generation_config.json. Import and load both use it.
// Negative ones, which some files have for none, are left out.
func SuppressedTokens(name string, data []byte) ([]int32, error) {
	var c struct {
		Tokens []int32 `json:"suppress_tokens"`
	}
	if err := pyjson.Unmarshal(data, &c); err != nil {
		return nil, fileError{Error(err.Error()), name}
	}
	return slices.DeleteFunc(c.Tokens, func(id int32) bool { return id < 0 }), nil
}

// fileError is an error of a configuration in another file than config.json.
type fileError struct {
	what Error
	name string
}

func (e fileError) Error() string { return e.name + ": " + string(e.what) }

func (e fileError) Unwrap() error { return ErrBad }

func inFile(name string, err error) error {
	var e Error
	if errors.As(err, &e) {
		return fileError{e, name}
	}
	return err
}
