package vocab_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/tokenizer"
)

// goldenKinds are ids of llama.cpp.
type goldenKinds struct {
	Tokens, Merges, Texts []string
	Kinds                 map[string]int // of each kind, its element of IDs
	IDs                   [][][]int32
}

// newerKinds have no golden: llama.cpp v0.5.0 lacks them, or their vocabularies are not of bytes. Each has the name of
// a kind that splits the same.
var newerKinds = map[string]string{
	"hy_v4": "deepseek-v3", "talkie": "gpt-4o", "glm5": "glm4", "ufakzeka": "", "gemma4": "",
	"granite-embed-multi-311m": "", "sarvam-moe": "",
}

// approximations are texts that llama.cpp splits otherwise than the published tokenizers of some kinds, whose patterns
// it writes without classes of case and without marks. Those have the published patterns.
var approximations = map[string][]string{
	"ภาษาไทย สวัสดี": {"gpt-4o", "kanana2", "kimi-k2", "llama4", "minimax-m2", "talkie", "tekken"},

	"CamelCaseHTTPServer snake_case kebab-case": {"cohere2moe", "kimi-k2", "tiny_aya", "youtu"},

	"1 22 333 4444 55555 666666 7777777 x12345y 3.14159 -1e10": {"cohere2moe", "tiny_aya"},
}

// Every kind of pre-tokenizer gives llama.cpp's ids, with a vocabulary whose merges cross every border of words.
func TestKindsOfLlamaCpp(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenKinds
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	for _, kind := range vocab.Kinds() {
		at, ok := g.Kinds[kind]
		if !ok {
			same, known := newerKinds[kind]
			if !known {
				t.Errorf("%s has no golden; add it to gguf_kinds.py's arguments", kind)
				continue
			}
			if at, ok = g.Kinds[same]; !ok {
				continue
			}
		}
		files, err := vocab.Files(metadata(t, text("ggml.model", "gpt2"), text("ggml.pre", kind),
			gguf.Pair{Key: "tokenizer.ggml.tokens", Value: gguf.Texts(g.Tokens)},
			gguf.Pair{Key: "tokenizer.ggml.merges", Value: gguf.Texts(g.Merges)}))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		tok, err := tokenizer.Load(file(t, files, "tokenizer.json"), file(t, files, "tokenizer_config.json"))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for i, s := range g.Texts {
			got, err := tok.Encode(t.Context(), s, false)
			if same := slices.Equal(got, g.IDs[at][i]); err != nil || same == slices.Contains(approximations[s], kind) {
				t.Errorf("%s: %q: %v, want %v (%v)", kind, s, words(tok, got), words(tok, g.IDs[at][i]), err)
			}
		}
	}
	for kind := range g.Kinds {
		if !slices.Contains(vocab.Kinds(), kind) {
			t.Errorf("%s is not in the table", kind)
		}
	}
}

// Some vocabularies of merges are of text whose spaces are replaced, which only their kind says.
func TestSpacesByKind(t *testing.T) {
	vocabulary := func(model, pre string) vocabFiles {
		files, err := vocab.Files(metadata(t, text("ggml.model", model), text("ggml.pre", pre), flag("add_bos_token", false),
			gguf.Pair{Key: "tokenizer.ggml.tokens", Value: gguf.Texts([]string{"<unk>", "▁", "a", "b", "▁a", "ab"})},
			gguf.Pair{Key: "tokenizer.ggml.token_type", Value: gguf.Numbers([]int32{2, 1, 1, 1, 1, 1})},
			gguf.Pair{Key: "tokenizer.ggml.merges", Value: gguf.Texts([]string{"▁ a", "a b"})}))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	want := string(file(t, vocabulary("gemma4", ""), "tokenizer.json"))
	for _, kind := range []string{"gemma4", "granite-embed-multi-311m", "sarvam-moe"} {
		files := vocabulary("gpt2", kind)
		if got := string(file(t, files, "tokenizer.json")); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		tok, err := tokenizer.Load(file(t, files, "tokenizer.json"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tok.Encode(t.Context(), "ab ab", false); err != nil || !slices.Equal(got, []int32{5, 4, 3}) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
}

type vocabFiles = []vocab.File

// words returns the tokens of ids.
func words(tok *tokenizer.Tokenizer, ids []int32) []string {
	var out []string
	for _, id := range ids {
		text, _ := tok.Token(id)
		out = append(out, text)
	}
	return out
}
