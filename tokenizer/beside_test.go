package tokenizer_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
)

// Files beside tokenizer_config.json add tokens as transformers 5.23 reads them.
func TestSettings(t *testing.T) {
	model, err := os.ReadFile("testdata/gpt2/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := tokenizer.Load(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := int32(plain.Size())
	word, err := plain.Encode(t.Context(), "user", false)
	if err != nil {
		t.Fatal(err)
	}
	const text = "<|im_start|>user"
	split, err := plain.Encode(t.Context(), text, false)
	if err != nil {
		t.Fatal(err)
	}
	whole := append([]int32{next}, word...)
	for _, c := range []struct {
		name, config, specials, added string
		want                          []int32
		hides                         bool // decoding leaves <|im_start|> out
	}{
		{"nothing", "", "", "", split, false},
		{"nothing but a configuration", `{"bos_token": "x"}`, "", "", split, false},
		{"added tokens", "", "", `{"<|im_start|>": 90000}`, whole, false},
		{"added tokens and a configuration", `{"model_max_length": 5}`, "", `{"<|im_start|>": 90000}`, whole, false},
		{"an added token that the map calls special", "{}",
			`{"eos_token": "<|im_start|>"}`, `{"<|im_start|>": 90000}`, whole, true},
		{"an object in the map", "{}",
			`{"eos_token": {"content": "<|im_start|>"}}`, `{"<|im_start|>": 90000}`, whole, true},
		{"one of several", "{}", `{"additional_special_tokens": ["<|im_start|>"]}`, `{"<|im_start|>": 90000}`, whole, true},
		{"only the map", "{}", `{"bos_token": "<|im_start|>"}`, "", whole, true},
		{"the configuration goes first", `{"bos_token": "user"}`, `{"bos_token": "<|im_start|>"}`, "", nil, false},
		{"null in the configuration", `{"bos_token": null}`, `{"bos_token": "<|im_start|>"}`, "", whole, true},
		{"added_tokens_decoder replaces both", `{"added_tokens_decoder": {"0": {"content": "!"}}}`,
			`{"bos_token": "<|im_start|>"}`, `{"<|im_start|>": 90000}`, nil, false},
	} {
		read := func(name string) ([]byte, error) {
			s := map[string]string{tokenizer.SpecialTokensMap: c.specials, tokenizer.AddedTokens: c.added}[name]
			if s == "" {
				return nil, nil
			}
			return []byte(s), nil
		}
		var config []byte
		if c.config != "" {
			config = []byte(c.config)
		}
		got, err := tokenizer.Settings(config, read)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		tok, err := tokenizer.Load(model, got)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ids, err := tok.Encode(t.Context(), text, false)
		if _, known := tok.ID("<|im_start|>"); err != nil || known == (c.want == nil || slices.Equal(c.want, split)) ||
			c.want != nil && !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v, want %v (%v)", c.name, ids, c.want, err)
		}
		if shown, err := tok.Decode(ids, true); err != nil || strings.Contains(shown, "im_start") == c.hides {
			t.Errorf("%s: %q (%v)", c.name, shown, err)
		}
	}
}

// A damaged file is named.
func TestSettingsInvalid(t *testing.T) {
	for name, text := range map[string]string{
		tokenizer.SpecialTokensMap: "[1]", tokenizer.AddedTokens: `{"a": "b"}`,
	} {
		_, err := tokenizer.Settings(nil, func(n string) ([]byte, error) {
			if n == name {
				return []byte(text), nil
			}
			return nil, nil
		})
		if !errors.Is(err, tokenizer.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	failed := errors.New("unreadable")
	if _, err := tokenizer.Settings(nil, func(string) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
