package ollama_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
)

func TestParseOllamaName(t *testing.T) {
	for in, want := range map[string]string{
		"llama":                           "registry.ollama.ai/library/llama/latest",
		"ollama://llama3.2:1b-Q4_0":       "registry.ollama.ai/library/llama3.2/1b-Q4_0",
		"me/model":                        "registry.ollama.ai/me/model/latest",
		"localhost:5000/team/model:v1":    "localhost:5000/team/model/v1",
		"_h/_n/_m:_t":                     "_h/_n/_m/_t",
		strings.Repeat("m", 80):           "registry.ollama.ai/library/" + strings.Repeat("m", 80) + "/latest",
		"hf.co/Qwen/Qwen3-4B-GGUF:Q4_K_M": "hf.co/Qwen/Qwen3-4B-GGUF/Q4_K_M",
	} {
		n, err := ollama.ParseName(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := strings.Join(n.Parts(), "/"); got != want {
			t.Errorf("%q is at %s, want %s", in, got, want)
		}
		if again, err := ollama.ParseName(n.String()); err != nil || again != n {
			t.Errorf("%q has String() %s, which parses as %v, %v", in, n, again, err)
		}
	}
	for in, says := range map[string]string{
		"":                                    "empty",
		"ollama://":                           "empty",
		"a/b/c/d":                             "more components",
		"a//b":                                "empty",
		"m:":                                  "tag is empty",
		"../x":                                `'.'`,
		"m:..":                                `'.'`,
		"n.s/m":                               `'.'`,
		"-m":                                  `'-'`,
		"m@sha256:" + strings.Repeat("0", 64): "no digest",
		strings.Repeat("m", 81):               "longer than 80",
		"m:" + strings.Repeat("t", 81):        "longer than 80",
		"a b":                                 `' '`,
		`a\b`:                                 `'\\'`,
	} {
		if _, err := ollama.ParseName(in); !errors.Is(err, manifest.ErrInvalidName) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one saying %q", in, err, says)
		}
	}
}
