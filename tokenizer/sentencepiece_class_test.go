package tokenizer

import (
	"fmt"
	"slices"
	"testing"
)

// The programs that checkpoints have beside their tokenizer.model encode each text between special tokens on its own,
// with BOS before all, and take the ids of added_tokens_decoder as they are. transformers 4.46's PreTrainedTokenizer
// with such a program gives these ids.
func TestSentencePiecePrograms(t *testing.T) {
	model := readFixture(t, "sp-bpe", "tokenizer.model")
	plain, err := LoadSentencePiece(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int32(plain.Size())
	decoder := fmt.Sprintf(`"added_tokens_decoder":{"%d":{"content":"<|im_end|>","special":true},`+
		`"%d":{"content":"<|far|>"}}`, n-2, n+7)
	const text = "the<|im_end|>the <|far|>lamp<|user|>\n"
	for _, c := range []struct {
		config string
		want   []any // ids and texts
	}{
		{`{"tokenizer_class":"InternLM2Tokenizer",` + decoder + `}`,
			[]any{1, "the", n - 2, "the ", n + 7, "lamp<|user|>\n"}},
		{`{"tokenizer_class":"BaichuanTokenizer","add_bos_token":false,` + decoder + `}`,
			[]any{"the", n - 2, "the ", n + 7, "lamp<|user|>\n"}},
		{`{"tokenizer_class":"InternLM2TokenizerFast","bos_token":"<s>"}`, []any{1, text}},
		// gMASK and sop before, and the special tokens behind the vocabulary
		{`{"tokenizer_class":"ChatGLMTokenizer"}`,
			[]any{n + 1, n + 3, "the<|im_end|>the <|far|>lamp", n + 6, "\n"}},
		{fmt.Sprintf(`{"tokenizer_class":"ChatGLMTokenizer","added_tokens_decoder":{`+
			`"%d":{"content":"[gMASK]","special":true},"%d":{"content":"sop","special":true},`+
			`"%d":{"content":"<|user|>","special":true}}}`, n+1, n+3, n+6),
			[]any{n + 1, n + 3, "the<|im_end|>the <|far|>lamp", n + 6, "\n"}},
	} {
		var want []int32
		for _, part := range c.want {
			switch part := part.(type) {
			case int:
				want = append(want, int32(part))
			case int32:
				want = append(want, part)
			case string:
				ids, err := plain.Encode(t.Context(), part, false)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, ids...)
			}
		}
		for how, load := range map[string]func() (*Tokenizer, error){
			"file": func() (*Tokenizer, error) { return LoadSentencePiece(model, []byte(c.config)) },
			"compiled": func() (*Tokenizer, error) {
				_, form, err := CompileSentencePiece(model, nil)
				if err != nil {
					return nil, err
				}
				return LoadCompiledSentencePiece(form, []byte(c.config))
			},
		} {
			tok, err := load()
			if err != nil {
				t.Fatalf("%s: %s: %v", c.config, how, err)
			}
			got, err := tok.Encode(t.Context(), text, true)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %s: %v, %v; want %v", c.config, how, got, err, want)
			}
		}
	}
	tok, err := LoadSentencePiece(model, []byte(`{"tokenizer_class":"InternLM2Tokenizer",`+decoder+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := tok.Decode([]int32{n - 2, n + 7}, false); err != nil || s != "<|im_end|><|far|>" {
		t.Errorf("decoded %q, %v", s, err)
	}
	if s, err := tok.Decode([]int32{n - 2}, true); err != nil || s != "" {
		t.Errorf("without special tokens: %q, %v", s, err)
	}
}
