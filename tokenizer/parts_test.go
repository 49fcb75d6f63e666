package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// Each component alone, compared with the reference's results from testdata/gen/tokenizers/parts.py.
func TestParts(t *testing.T) {
	type golden struct {
		Part   json.RawMessage `json:"part"`
		Texts  []*string       `json:"texts"`
		Pieces [][]string      `json:"pieces"`
		IDs    []int32         `json:"ids"`
	}
	var all struct {
		Texts         []string  `json:"texts"`
		Tokens        []string  `json:"tokens"`
		Lists         [][]int32 `json:"lists"`
		Normalizers   []golden  `json:"normalizers"`
		PreTokenizers []golden  `json:"pre_tokenizers"`
		Decoders      []golden  `json:"decoders"`
		Posts         []golden  `json:"posts"`
	}
	tokenizertest.ReadJSON(t, familyDir+"/parts.json", &all)
	load := func(t *testing.T, model string, part string, value []byte) *Tokenizer {
		t.Helper()
		tok, err := Load([]byte(file("model", model, part, string(value))), nil)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	const words = `{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}`
	for _, g := range all.Normalizers {
		t.Run("normalizer"+string(g.Part), func(t *testing.T) {
			tok := load(t, words, "normalizer", g.Part)
			for i, text := range all.Texts {
				got, err := normalize.NewPass(work.Start(t.Context(), work.Limits{}), len(text)).Take(tok.normalizer, text)
				if err != nil || got != *g.Texts[i] {
					t.Errorf("%q:\n got %q, %v\nwant %q", text, got, err, *g.Texts[i])
				}
			}
		})
	}
	for _, g := range all.PreTokenizers {
		t.Run("pre-tokenizer"+string(g.Part), func(t *testing.T) {
			tok := load(t, words, "pre_tokenizer", g.Part)
			for i, text := range all.Texts {
				if text == "" {
					continue
				}
				if got := pieces(t, tok.pre, text); !slices.Equal(got, g.Pieces[i]) {
					t.Errorf("%q:\n got %q\nwant %q", text, got, g.Pieces[i])
				}
			}
		})
	}
	vocab := map[string]int{}
	for i, token := range all.Tokens {
		vocab[token] = i
	}
	model := string(toJSON(t, map[string]any{"type": "WordLevel", "vocab": vocab, "unk_token": "s"}))
	for _, g := range all.Decoders {
		t.Run("decoder"+string(g.Part), func(t *testing.T) {
			tok := load(t, model, "decoder", g.Part)
			for i, ids := range all.Lists {
				want := g.Texts[i]
				got, err := tok.Decode(ids, false)
				if err != nil {
					t.Fatal(err)
				}
				if want != nil && got != *want { // absent: the reference panics
					t.Errorf("%v:\n got %q\nwant %q", ids, got, *want)
				}
				s := tok.Stream(false)
				streamed := ""
				for _, id := range ids {
					streamed += s.Next(id)
					if !strings.HasPrefix(got, streamed) {
						t.Errorf("%v: streamed %q, which is no prefix of %q", ids, streamed, got)
					}
				}
				if streamed += s.Flush(); streamed != got {
					t.Errorf("%v: streamed %q, want %q", ids, streamed, got)
				}
			}
		})
	}
	for _, g := range all.Posts {
		tok := load(t, words, "post_processor", g.Part)
		if got, err := tok.Encode(t.Context(), "a", true); err != nil || !slices.Equal(got, g.IDs) {
			t.Errorf("%s: %v, %v; want %v", g.Part, got, err, g.IDs)
		}
	}
}

func pieces(t testing.TB, p pretokenize.Steps, s string) []string {
	t.Helper()
	var out []string
	emit := func(piece string, _ bool) error {
		out = append(out, piece)
		return nil
	}
	if err := p.Chain(work.Start(t.Context(), work.Limits{}), len(s), emit)(s, true); err != nil {
		t.Fatal(err)
	}
	return out
}
