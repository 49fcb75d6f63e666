package grammar

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
)

// fixtureVocabularies returns the vocabularies of this repository's tokenizers: byte-level ones and ones with byte
// tokens.
func fixtureVocabularies(t *testing.T) map[string]*Vocabulary {
	t.Helper()
	all := map[string]*Vocabulary{}
	for _, dir := range []string{"../tokenizer/testdata/qwen", "../tokenizer/testdata/llama3",
		"../testdata/tokenizers/gemma", "../testdata/tokenizers/llama2", "../testdata/models/demo"} {
		data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Load(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens := make([][]byte, tok.Size())
		for id := range tokens {
			tokens[id], _ = tok.Bytes(int32(id))
		}
		all[filepath.Base(dir)] = NewVocabulary(tokens, func(s string) ([]int32, error) {
			return tok.Encode(context.Background(), s, false)
		})
	}
	return all
}

// Texts generated with the vocabularies and encoders of real tokenizers validate.
func TestFixtureTokenizers(t *testing.T) {
	for name, v := range fixtureVocabularies(t) {
		t.Run(name, func(t *testing.T) {
			for i := range max(12, 30/raceFactor) {
				r := rand.New(rand.NewPCG(uint64(i), 7))
				m := &schemaMaker{r: r}
				s := m.root(1 + i%3)
				g, err := CompileSchema(context.Background(), []byte(s.text))
				if errors.Is(err, ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				valid := validator(t, s.text)
				least := fewest(t, g, v)
				for k := range 4 {
					text := write(t, g, v, least+7*k, r)
					if err := validate(valid, text); err != nil {
						t.Fatalf("%d: %s: wrote %s: %v", i, s.text, text, err)
					}
				}
			}
		})
	}
}
