package arch_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/gguf"
)

// ggufMap is a file with metadata and an embedding.
type ggufMap map[string]any

func (f ggufMap) Value(key string) (any, bool) { v, ok := f[key]; return v, ok }

func (f ggufMap) Shape(name string) ([]int64, bool) {
	return []int64{1024, 192}, name == gguf.Embedding
}

func (f ggufMap) Floats(string) ([]float32, error) { return nil, gguf.ErrMetadata }

// Errors about a file name its own keys, and never those of the config.json that is made of it. Ids of special tokens
// beyond the vocabulary are ignored.
func TestGGUFErrors(t *testing.T) {
	num := func(s string) json.Number { return json.Number(s) }
	base := ggufMap{
		"general.architecture": "llama", "llama.block_count": num("2"), "llama.context_length": num("128"),
		"llama.embedding_length": num("192"), "llama.feed_forward_length": num("256"),
		"llama.attention.head_count": num("6"), "llama.attention.head_count_kv": num("2"),
		"llama.attention.layer_norm_rms_epsilon": num("0.00001"), "llama.rope.freq_base": num("10000"),
		"tokenizer.ggml.bos_token_id": num("1"),
	}
	for _, c := range []struct {
		key  string
		v    any // nil = the key is removed
		want string
	}{
		{"tokenizer.ggml.bos_token_id", num("1"), ""},
		{"tokenizer.ggml.bos_token_id", num("1024"), ""},
		{"tokenizer.ggml.eos_token_id", num("4294967295"), ""},
		{"tokenizer.ggml.eos_token_id", num("-1"), ""},
		{"tokenizer.ggml.eos_token_id", "end", "tokenizer.ggml.eos_token_id = \"end\""},
		{"llama.feed_forward_length", nil, "llama.feed_forward_length: missing"},
		{"llama.block_count", nil, "llama.block_count is missing"},
		{"llama.context_length", num("0"), "llama.context_length = 0: must be > 0"},
		{"llama.block_count", num("-1"), "llama.block_count = -1"},
		{"llama.attention.head_count", num("0"), "llama.attention.head_count = 0"},
		{"llama.attention.head_count_kv", num("4"), "llama.attention.head_count_kv = 4"},
		{"llama.attention.layer_norm_rms_epsilon", "tiny", "llama.attention.layer_norm_rms_epsilon = \"tiny\""},
		{"llama.rope.freq_base", num("-5"), "llama.rope.freq_base = -5"},
		{"llama.attention.key_length", num("7"), "llama.attention.key_length = 7"},
	} {
		f := maps.Clone(base)
		if f[c.key] = c.v; c.v == nil {
			delete(f, c.key)
		}
		g, err := arch.DetectGGUF(f)
		if err != nil {
			t.Fatal(err)
		}
		config, err := g.MakeConfig(f)
		if err == nil {
			_, err = arch.ParseGGUF(g, config)
		}
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%s = %v: %v", c.key, c.v, err)
			}
		case !errors.Is(err, gguf.ErrMetadata) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "config.json"):
			t.Errorf("%s = %v: %v, want %s", c.key, c.v, err, c.want)
		}
	}
}
