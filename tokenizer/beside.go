package tokenizer

import (
	"bytes"
	"encoding/json"

	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer/fault"
)

// Names of the files in which tokenizers saved before tokenizer_config.json listed all added tokens have them.
const (
	SpecialTokensMap = "special_tokens_map.json"
	AddedTokens      = "added_tokens.json"
)

// Settings returns the tokenizer_config.json of a folder with what the files beside it add, as transformers 5.23 reads
// them: without added_tokens_decoder in tokenizer_config.json, the special tokens of special_tokens_map.json that it
// lacks, and the tokens of added_tokens.json. read returns nil for a missing file. The result is nil if there is
// nothing.
func Settings(config []byte, read func(name string) ([]byte, error)) ([]byte, error) {
	c := map[string]json.RawMessage{}
	if config != nil {
		if err := pyjson.Unmarshal(config, &c); err != nil || c == nil {
			return config, nil // the loader says what is wrong
		}
	}
	if given(c["added_tokens_decoder"]) {
		return config, nil
	}
	specials := map[string]json.RawMessage{}
	data, err := read(SpecialTokensMap)
	if err != nil {
		return nil, err
	}
	if data != nil {
		if err := pyjson.Unmarshal(data, &specials); err != nil {
			return nil, fault.Errorf(ErrInvalid, "%s: %v; want an object of texts or tokens", SpecialTokensMap, err)
		}
	}
	added := map[string]int32{}
	if data, err = read(AddedTokens); err != nil {
		return nil, err
	}
	if data != nil {
		if err := pyjson.Unmarshal(data, &added); err != nil {
			return nil, fault.Errorf(ErrInvalid, "%s: %v; want an object of texts and ids", AddedTokens, err)
		}
	}
	if len(specials) == 0 && len(added) == 0 {
		return config, nil
	}
	for name, token := range specials {
		if !given(c[name]) {
			c[name] = token
		}
	}
	if len(added) > 0 {
		if c["added_tokens_decoder"], err = json.Marshal(decoderOf(added, c)); err != nil {
			return nil, err
		}
	}
	return json.Marshal(c)
}

// given reports whether a value is neither absent nor empty.
func given(v json.RawMessage) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", `""`, "{}", "[]":
		return false
	}
	return true
}

// decoderToken is a token of added_tokens_decoder.
type decoderToken struct {
	Content    string `json:"content"`
	Lstrip     bool   `json:"lstrip"`
	Normalized bool   `json:"normalized"`
	Rstrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
	Special    bool   `json:"special"`
}

// decoderOf makes added_tokens_decoder of added tokens: those that the configuration names are special.
func decoderOf(added map[string]int32, config map[string]json.RawMessage) map[int32]decoderToken {
	special := map[string]bool{}
	note := func(v json.RawMessage) {
		var token struct{ Content string }
		if json.Unmarshal(v, &token.Content) == nil || json.Unmarshal(v, &token) == nil {
			special[token.Content] = true
		}
	}
	for _, name := range specialNames {
		note(config[name])
	}
	for _, name := range []string{"additional_special_tokens", "extra_special_tokens"} {
		var list []json.RawMessage
		if json.Unmarshal(config[name], &list) == nil {
			for _, v := range list {
				note(v)
			}
		}
	}
	out := map[int32]decoderToken{}
	for text, id := range added {
		out[id] = decoderToken{Content: text, Normalized: !special[text], Special: special[text]}
	}
	return out
}
