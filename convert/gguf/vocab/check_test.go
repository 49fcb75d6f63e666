package vocab_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/tokenizer"
)

// with returns the pairs with another value for a key; a nil value removes it.
func with(pairs []gguf.Pair, key string, v *gguf.Value) []gguf.Pair {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p gguf.Pair) bool { return p.Key == "tokenizer.ggml."+key })
	if v != nil {
		pairs = append(pairs, gguf.Pair{Key: "tokenizer.ggml." + key, Value: *v})
	}
	return pairs
}

// The token for what is not in the vocabulary is the one that the file names, of whatever type, or llama.cpp's default.
func TestUnknown(t *testing.T) {
	kinds := func(changes map[int]int32) *gguf.Value {
		types := make([]int32, 265)
		for i := range types {
			switch types[i] = 1; {
			case i < 3:
				types[i] = 3
			case i < 259:
				types[i] = 6
			}
		}
		for at, kind := range changes {
			types[at] = kind
		}
		v := gguf.Numbers(types)
		return &v
	}
	number := func(n uint32) *gguf.Value {
		v := gguf.Number(n)
		return &v
	}
	for _, c := range []struct {
		name  string
		types map[int]int32
		id    *gguf.Value
	}{
		{"Gemma 3: <unk> is a control token and named", nil, number(0)},
		{"<unk> is a control token and not named", nil, nil},
		{"a normal token is named", map[int]int32{0: 1}, number(0)},
		{"a token that users define is named", map[int]int32{0: 4}, number(0)},
		{"two tokens are unknown", map[int]int32{0: 2, 1: 2}, number(0)},
		{"two tokens are unknown, none is named", map[int]int32{0: 2, 2: 2}, nil},
		{"the file names an id beyond the vocabulary", map[int]int32{0: 2}, number(265)},
		{"the file names no token", map[int]int32{0: 2}, number(math.MaxUint32)},
	} {
		pairs := with(with(small(), "token_type", kinds(c.types)), "unknown_token_id", c.id)
		files, err := vocab.Files(metadata(t, pairs...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		tok, err := tokenizer.LoadSentencePiece(file(t, files, "tokenizer.model"), file(t, files, "tokenizer_config.json"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := tok.Encode(t.Context(), "ab<s>é", true)
		if err != nil || !slices.Equal(got, []int32{1, 263, 1, 259, 198, 172}) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// Ids of special tokens that are not in the vocabulary are ignored with a note.
func TestIdsBeyond(t *testing.T) {
	plain, err := vocab.Files(metadata(t, with(small(), "bos_token_id", nil)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "cls", "mask", "prefix", "suffix", "middle",
		"fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep",
	} {
		for _, id := range []uint32{265, 32000, math.MaxInt32, math.MaxUint32} {
			v := gguf.Number(id)
			m := metadata(t, with(small(), name+"_token_id", &v)...)
			files, err := vocab.Files(m)
			if err != nil {
				t.Errorf("%s %d: %v", name, id, err)
				continue
			}
			notes := vocab.Notes(m)
			if len(notes) != 1 || !strings.Contains(notes[0], "tokenizer.ggml."+name+"_token_id") ||
				!strings.Contains(notes[0], "265 tokens") {
				t.Errorf("%s %d: %q", name, id, notes)
			}
			tok, err := tokenizer.LoadSentencePiece(file(t, files, "tokenizer.model"), file(t, files, "tokenizer_config.json"))
			if err != nil {
				t.Errorf("%s %d: %v", name, id, err)
			} else if got, _ := tok.Encode(t.Context(), "ab", true); !slices.Equal(got, []int32{1, 263}) {
				t.Errorf("%s %d: %v", name, id, got) // BOS has llama.cpp's default
			}
			if name == "bos" && string(file(t, files, "tokenizer_config.json")) !=
				string(file(t, plain, "tokenizer_config.json")) {
				t.Errorf("bos %d is not as if there were none", id)
			}
		}
	}
	if notes := vocab.Notes(metadata(t, small()...)); notes != nil {
		t.Errorf("notes without a reason: %q", notes)
	}
}

// What makes a vocabulary unusable is said in the terms of the file.
func TestBrokenVocabularies(t *testing.T) {
	value := func(v gguf.Value) *gguf.Value { return &v }
	types := func(at int, kind int32) *gguf.Value {
		list := []int32{2, 3, 3}
		for i := range 262 {
			list = append(list, 6)
			if i >= 256 {
				list[3+i] = 1
			}
		}
		list[at] = kind
		return value(gguf.Numbers(list))
	}
	tokens := func(at int, text string) *gguf.Value {
		i := slices.IndexFunc(small(), func(p gguf.Pair) bool { return p.Key == "tokenizer.ggml.tokens" })
		list := slices.Clone(small()[i].Value.Strings())
		list[at] = text
		return value(gguf.Texts(list))
	}
	bpe := []gguf.Pair{
		text("ggml.model", "gpt2"), text("ggml.pre", "gpt-2"),
		{Key: "tokenizer.ggml.tokens", Value: gguf.Texts([]string{"a", "b", "ab"})},
		{Key: "tokenizer.ggml.merges", Value: gguf.Texts([]string{"a b"})},
	}
	if _, err := vocab.Files(metadata(t, bpe...)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pairs []gguf.Pair
		want  string
	}{
		{with(bpe, "merges", nil), `tokenizer.ggml.merges: it is missing, but tokenizer.ggml.model is "gpt2"`},
		{with(bpe, "merges", value(gguf.Text("a b"))), "tokenizer.ggml.merges: it is string"},
		{with(bpe, "merges", value(gguf.Numbers([]int32{1}))), "tokenizer.ggml.merges: it is array of 1 int32"},
		{with(bpe, "merges", value(gguf.Texts([]string{"a b", "ab"}))), `element 1 is "ab", want two tokens`},
		{with(bpe, "merges", value(gguf.Texts([]string{"a "}))), `element 0 is "a ", want two tokens`},
		{with(bpe, "merges", value(gguf.Texts([]string{"b a"}))),
			`element 0 is "b a", but "ba" is not in tokenizer.ggml.tokens`},
		{with(bpe, "merges", value(gguf.Texts([]string{"c b"}))), `but "c" is not in tokenizer.ggml.tokens`},
		{with(small(), "scores", nil), `tokenizer.ggml.scores: it is missing, but tokenizer.ggml.model is "llama"`},
		{with(small(), "token_type", types(5, 1)), "255 elements are 6 (byte)"},
		{with(small(), "token_type", types(260, 6)), `element 260 is 6 (byte), but the token is "a"`},
		{with(small(), "token_type", types(260, 9)), "element 260 is 9, want 1 to 6"},
		{with(small(), "tokens", tokens(260, "b")), `elements 260 and 261 are both "b"`},
		{with(small(), "tokens", tokens(260, "\xff")), "element 260 is longer than 2048 bytes or not text"},
		{with(small(), "tokens", tokens(260, strings.Repeat("x", 8000))), "element 260 is longer"},
	} {
		_, err := vocab.Files(metadata(t, c.pairs...))
		if !errors.Is(err, vocab.ErrVocabulary) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), ".json") || strings.Contains(err.Error(), "tokenizer.model:") {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	// An empty token has the name that llama.cpp gives it.
	if _, err := vocab.Files(metadata(t, with(small(), "tokens", tokens(260, ""))...)); err != nil {
		t.Errorf("an empty token: %v", err)
	}
}
