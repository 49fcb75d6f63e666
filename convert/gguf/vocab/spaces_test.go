package vocab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/tokenizer"
)

// A tokenizer.json with SentencePiece's merges encodes the same after it was written and read as metadata.
func TestSpaces(t *testing.T) {
	for _, name := range []string{"llama2"} {
		folder := filepath.Join("..", "..", "..", "testdata", "tokenizers", name)
		data, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Encode []struct {
				Text string
				IDs  []int32
			}
		}
		raw, err := os.ReadFile(filepath.Join(folder, "golden.json"))
		if err != nil || json.Unmarshal(raw, &golden) != nil || len(golden.Encode) < 10 {
			t.Fatalf("%s: %d texts, %v", name, len(golden.Encode), err)
		}
		pairs, err := vocab.Metadata(vocab.Source{Tokenizer: data, BOS: []int32{1}, EOS: []int32{2}})
		if err != nil {
			t.Fatal(err)
		}
		files, err := vocab.Files(metadata(t, pairs...))
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.LoadSentencePiece(file(t, files, "tokenizer.model"), file(t, files, "tokenizer_config.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range golden.Encode {
			if c.Text == "" || strings.Contains(c.Text, "<unk>") {
				continue // of bytes that are not UTF-8, or with a token that SentencePiece does not match in text
			}
			if got, err := tok.Encode(t.Context(), c.Text, false); err != nil || !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q is %v, %v, want %v", name, c.Text, got, err, c.IDs)
			}
		}
		// Another normalizer is refused.
		other := bytes.Replace(data, []byte(`"Replace"`), []byte(`"NFKC"`), 1)
		if _, err := vocab.Metadata(vocab.Source{Tokenizer: other}); !errors.Is(err, vocab.ErrVocabulary) {
			t.Errorf("%s with another normalizer: %v", name, err)
		}
	}
}

// A token that no merge makes, but that SentencePiece would, is refused by name.
func TestSpacesUnmerged(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/tokenizers/gemma/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = vocab.Metadata(vocab.Source{Tokenizer: data})
	if !errors.Is(err, vocab.ErrVocabulary) || !strings.Contains(err.Error(), `no merge makes token 7, "\n\n"`) {
		t.Error(err)
	}
}
