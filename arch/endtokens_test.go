package arch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/config"
)

func TestEndTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int32
	}{
		{`{"eos_token_id": 2}`, []int32{2}},
		{`{"eos_token_id": [2, 32000]}`, []int32{2, 32000}},
		{`{"eos_token_id": null}`, nil},
		{`{"eos_token_id": []}`, nil},
		{`{}`, nil},
		{`{"temperature": Infinity, "eos_token_id": 7}`, []int32{7}},
		{`{"text_config": {"eos_token_id": 106}}`, []int32{106}},
		{`{"eos_token_id": 1, "text_config": {"eos_token_id": [1, 106]}}`, []int32{1, 1, 106}},
	} {
		if got, err := config.EndTokens("generation_config.json", []byte(c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		`[]`:                         "generation_config.json: a JSON array, want an object",
		`3`:                          "generation_config.json: a JSON number, want an object",
		`null`:                       "generation_config.json: null, want an object",
		``:                           "generation_config.json: the JSON ends too early",
		`{"eos_token_id": "</s>"}`:   `generation_config.json: eos_token_id = "</s>": must be a token id or a list`,
		`{"eos_token_id": [1, "a"]}`: `generation_config.json: eos_token_id = [1, "a"]: must be a token id`,
		`{"eos_token_id": -1}`:       "generation_config.json: eos_token_id = -1: must be a token id",
		`{"eos_token_id": 1.5}`:      "generation_config.json: eos_token_id = 1.5: must be a token id",
		`{"text_config": {"eos_token_id": true}}`: "generation_config.json: text_config.eos_token_id = true: must be",
	} {
		_, err := config.EndTokens("generation_config.json", []byte(text))
		if !errors.Is(err, config.ErrBad) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
