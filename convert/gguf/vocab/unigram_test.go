package vocab_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/tokenizer"
)

const tokenizers = "../../../testdata/tokenizers"

func readFile(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{tokenizers}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// again writes a tokenizer as metadata and returns the one that is made of it.
func again(t *testing.T, s vocab.Source) (*tokenizer.Tokenizer, gguf.Metadata) {
	t.Helper()
	pairs, err := vocab.Metadata(s)
	if err != nil {
		t.Fatal(err)
	}
	m := metadata(t, pairs...)
	files, err := vocab.Files(m)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.LoadSentencePiece(file(t, files, "tokenizer.model"), file(t, files, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok, m
}

// A tokenizer.model encodes the same after it was written and read as metadata, with tokens that are added to it.
func TestTokenizerModel(t *testing.T) {
	var goldens map[string]struct {
		Encode []struct {
			Text         string
			IDs, Special []int32
		}
	}
	if err := json.Unmarshal(readFile(t, "sentencepiece.json"), &goldens); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, kind string }{{"sp-bpe", "llama"}, {"sp-unigram", "t5"}} {
		model := readFile(t, c.name, "tokenizer.model")
		config := readFile(t, c.name, "tokenizer_config.json")
		tok, m := again(t, vocab.Source{Model: model, Config: config})
		if kind, err := m.Text("tokenizer.ggml.model"); err != nil || kind != c.kind {
			t.Errorf("%s: kind %s, %v", c.name, kind, err)
		}
		texts := 0
		for _, g := range goldens[c.name].Encode {
			if g.Text == "" || strings.Contains(g.Text, "▁") || strings.Contains(g.Text, "<unk>") {
				continue // ▁ of a token that users define is a space in GGUF
			}
			texts++
			plain, errA := tok.Encode(t.Context(), g.Text, false)
			special, errB := tok.Encode(t.Context(), g.Text, true)
			if errA != nil || errB != nil || !slices.Equal(plain, g.IDs) || !slices.Equal(special, g.Special) {
				t.Errorf("%s: %q is %v and %v, want %v and %v (%v, %v)", c.name, g.Text, plain, special, g.IDs, g.Special,
					errA, errB)
			}
		}
		if texts < 20 {
			t.Errorf("%s: %d texts", c.name, texts)
		}
		more := strings.Replace(string(config), "{", `{"add_eos_token": true, "extra_special_tokens": ["<|more|>"],`, 1)
		want, err := tokenizer.LoadSentencePiece(model, []byte(more))
		if err != nil {
			t.Fatal(err)
		}
		tok, m = again(t, vocab.Source{Model: model, Config: []byte(more), Vocabulary: want.Size() + 3})
		a, _ := want.Encode(t.Context(), "It is<|more|>", true)
		if b, err := tok.Encode(t.Context(), "It is<|more|>", true); err != nil || !slices.Equal(a, b) {
			t.Errorf("%s: %v, %v, want %v", c.name, b, err, a)
		}
		tokens, err := m.Texts("tokenizer.ggml.tokens")
		if err != nil || len(tokens) != want.Size()+3 || tokens[want.Size()-1] != "<|more|>" {
			t.Errorf("%s: %d tokens, %v", c.name, len(tokens), err)
		}
	}
	// A program's tokens replace pieces, and its own come before a text.
	model := readFile(t, "sp-bpe", "tokenizer.model")
	for class, added := range map[string]string{
		"InternLM2Tokenizer": `,"added_tokens_decoder":{"890":{"content":"<|im_end|>","special":true}}`,
		"ChatGLMTokenizer":   "",
	} {
		_, m := again(t, vocab.Source{Model: model, Config: []byte(`{"tokenizer_class":"` + class + `"` + added + `}`)})
		tokens, err := m.Texts("tokenizer.ggml.tokens")
		if err != nil || added != "" && tokens[890] != "<|im_end|>" ||
			added == "" && tokens[len(tokens)-1] != "<|observation|>" {
			t.Errorf("%s: %d tokens, %v", class, len(tokens), err)
		}
		if eos, err := m.Bool("tokenizer.ggml.add_eos_token", false); err != nil || eos {
			t.Errorf("%s: EOS is added: %v", class, err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"sp-bpe-plain", "no normalizer before merges"}, {"sp-unigram-bytes", "no Unigram with bytes"},
	} {
		_, err := vocab.Metadata(vocab.Source{Model: readFile(t, c.name, "tokenizer.model")})
		if !errors.Is(err, vocab.ErrVocabulary) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := vocab.Metadata(vocab.Source{Model: []byte("x")}); !errors.Is(err, vocab.ErrVocabulary) {
		t.Error(err)
	}
}

// A tokenizer.json with Unigram encodes the same after it was written and read as metadata.
func TestUnigram(t *testing.T) {
	data := readFile(t, "t5", "tokenizer.json")
	var golden struct {
		Encode []struct {
			Text         string
			IDs, Special []int32
		}
	}
	if err := json.Unmarshal(readFile(t, "t5", "golden.json"), &golden); err != nil || len(golden.Encode) < 10 {
		t.Fatal(len(golden.Encode), err)
	}
	tok, m := again(t, vocab.Source{Tokenizer: data, Config: readFile(t, "t5", "tokenizer_config.json")})
	if id, err := m.Int("tokenizer.ggml.unknown_token_id"); err != nil || id != 2 {
		t.Errorf("unknown token %d, %v", id, err)
	}
	texts := 0
	for _, g := range golden.Encode {
		if strings.ContainsFunc(g.Text, func(r rune) bool { return r < ' ' || r > '~' || r == '<' }) || g.Text == "" ||
			strings.Contains(g.Text, "  ") {
			continue // the package tokenizers splits at more spaces than SentencePiece, and elsewhere at graphemes
		}
		texts++
		if got, err := tok.Encode(t.Context(), g.Text, false); err != nil || !slices.Equal(got, g.IDs) {
			t.Errorf("%q is %v, want %v (%v)", g.Text, got, g.IDs, err)
		}
	}
	if texts < 5 {
		t.Errorf("%d texts", texts)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"Precompiled"`, `"NFKC"`, "no normalizer NFKC"}, {`"Metaspace"`, `"Digits"`, "no pre-tokenizer Digits"},
		{`"unk_id"`, `"other"`, "no unknown token"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "no Unigram with bytes"},
	} {
		other := strings.Replace(string(data), c.old, c.new, 1)
		if other == string(data) {
			other = strings.Replace(string(data), strings.ReplaceAll(c.old, ": ", ":"), c.new, 1)
		}
		_, err := vocab.Metadata(vocab.Source{Tokenizer: []byte(other)})
		if !errors.Is(err, vocab.ErrVocabulary) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

// Tokens that users define match spaces in the text, and unused ones, which fill the vocabulary up, are no obstacle.
func TestPiecesOfConverter(t *testing.T) {
	pairs := small()
	for i, p := range pairs {
		switch p.Key {
		case "tokenizer.ggml.tokens":
			pairs[i].Value = gguf.Texts(append(slices.Clone(p.Value.Strings()), "  ", "[PAD266]"))
		case "tokenizer.ggml.token_type":
			types := slices.Repeat([]int32{1}, 265)
			types[0] = 2
			for b := range 256 {
				types[3+b] = 6
			}
			pairs[i].Value = gguf.Numbers(append(types, 4, 5))
		case "tokenizer.ggml.scores":
			pairs[i].Value = gguf.Floats(append(make([]float32, 266), -1000))
		}
	}
	files, err := vocab.Files(metadata(t, append(pairs, flag("add_space_prefix", false))...))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.LoadSentencePiece(file(t, files, "tokenizer.model"), file(t, files, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tok.Encode(t.Context(), "a  b", false)
	if want := []int32{260, 265, 261}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
