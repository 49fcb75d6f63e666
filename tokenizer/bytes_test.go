package tokenizer

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// After a text token, the concatenated Bytes of further tokens equal what Decode adds.
func TestBytesAreDecoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, name := range []string{"gpt2", "qwen", "llama3", familyDir + "/gemma", familyDir + "/llama2",
		familyDir + "/llama2-metaspace",
		familyDir + "/t5", familyDir + "/unigram", familyDir + "/tekken", "sp-bpe", "sp-unigram-bytes"} {
		t.Run(name, func(t *testing.T) {
			var tok *Tokenizer
			if name == "sp-bpe" || name == "sp-unigram-bytes" {
				tok = loadSentencePiece(t, name)
			} else {
				tok = loadFixture(t, name)
			}
			first, err := tok.Encode(t.Context(), "a b", false)
			if err != nil {
				t.Fatal(err)
			}
			begin, err := tok.Decode(first, false)
			if err != nil {
				t.Fatal(err)
			}
			valid := 0
			for range 3000 {
				ids := append([]int32{}, first...)
				want := []byte(begin)
				for range 1 + rng.IntN(4) {
					id := int32(rng.IntN(tok.Size()))
					if b, ok := tok.Bytes(id); ok {
						ids = append(ids, id)
						want = append(want, b...)
					}
				}
				if !utf8.Valid(want) {
					continue // Decode replaces invalid UTF-8
				}
				valid++
				if got, err := tok.Decode(ids, false); err != nil || got != string(want) {
					t.Fatalf("%v: decoded %q, %v; the bytes are %q", ids, got, err, want)
				}
			}
			if valid < 100 {
				t.Fatalf("only %d texts were valid UTF-8", valid)
			}
		})
	}
}

// Special tokens have no bytes. Neither have tokens whose text depends on their neighbors.
func TestBytesAbsent(t *testing.T) {
	qwen := loadFixture(t, "qwen")
	if id, ok := qwen.ID("<|im_end|>"); !ok {
		t.Fatal("no <|im_end|>")
	} else if b, ok := qwen.Bytes(id); ok {
		t.Errorf("the bytes of <|im_end|> are %q", b)
	}
	for _, id := range []int32{-1, int32(qwen.Size())} {
		if b, ok := qwen.Bytes(id); ok {
			t.Errorf("the bytes of id %d are %q", id, b)
		}
	}
	bert := loadFixture(t, familyDir+"/bert")
	for id := range int32(bert.Size()) {
		if b, ok := bert.Bytes(id); ok {
			t.Fatalf("the bytes of a WordPiece token are %q", b)
		}
	}
}
