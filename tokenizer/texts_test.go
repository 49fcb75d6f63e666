package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

var longTexts = flag.Int("long", 16, "log2 of the size of TestLongTexts's texts")

// families are the fixtures trained by testdata/gen/tokenizers/families.py.
var families = []string{"llama2", "llama2-metaspace", "gemma", "t5", "unigram", "bert", "tekken", "glm4", "nemotron"}

const familyDir = "../../testdata/tokenizers"

func TestFamilies(t *testing.T) {
	for _, name := range families {
		t.Run(name, func(t *testing.T) { checkGolden(t, filepath.Join(familyDir, name)) })
	}
}

// generator reproduces the texts of testdata/gen/tokenizers/texts.py: the same state gives the same texts.
type generator struct {
	state    uint64
	lists    [][]string
	specials []string
	skip     bool // always decode without special tokens
}

func newGenerator(t testing.TB, specials []string) *generator {
	t.Helper()
	g := &generator{state: 2026, specials: specials}
	tokenizertest.ReadJSON(t, familyDir+"/pieces.json", &g.lists)
	return g
}

func (g *generator) below(n int) int {
	g.state = g.state*6364136223846793005 + 1442695040888963407
	return int((g.state >> 33) % uint64(n))
}

// text returns a random text. One in eight is not valid UTF-8.
func (g *generator) text() string {
	var out []byte
	for range g.below(20) {
		switch kind := g.below(len(g.lists) + 4); {
		case kind < len(g.lists):
			out = append(out, g.lists[kind][g.below(len(g.lists[kind]))]...)
		case kind == len(g.lists):
			out = append(out, string(rune(g.below([]int{0x80, 0x800, 0x3000, 0x110000}[g.below(4)])))...)
		case kind == len(g.lists)+1:
			c := []string{" ", "a", "\n", "é"}[g.below(4)]
			out = append(out, strings.Repeat(c, 1+g.below(40))...)
		case len(g.specials) > 0:
			s := g.specials[g.below(len(g.specials))]
			out = append(out, []string{s, " " + s + " ", s + s, "a" + s + "b"}[g.below(4)]...)
		}
	}
	if g.below(8) == 0 {
		for range 1 + g.below(3) {
			at := g.below(len(out) + 1)
			b := []byte{0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xa0, 0xf0, 0x9f, 0xf4, 0x90, 0xff}[g.below(12)]
			out = slices.Insert(out, at, b)
		}
	}
	return string(out)
}

// digest returns the hash of the results for one batch of texts, as the generator computes it for the reference.
func (g *generator) digest(t testing.TB, tok *Tokenizer, size, texts int) string {
	t.Helper()
	h := sha256.New()
	number := func(n int) { h.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	for range texts {
		text := g.text()
		encode := func(special bool) []int32 {
			ids, err := tok.Encode(t.Context(), text, special)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			number(len(ids))
			for _, id := range ids {
				number(int(id))
			}
			return ids
		}
		decode := func(ids []int32, skip bool) {
			s, err := tok.Decode(ids, skip)
			if err != nil {
				t.Fatalf("%v: %v", ids, err)
			}
			number(len(s))
			h.Write([]byte(s))
			stream := tok.Stream(skip)
			got := ""
			for _, id := range ids {
				got += stream.Next(id)
				if !strings.HasPrefix(s, got) {
					t.Fatalf("%v: streamed %q, which is no prefix of %q", ids, got, s)
				}
			}
			if got += stream.Flush(); got != s {
				t.Fatalf("%v: streamed %q, want %q", ids, got, s)
			}
		}
		ids, special := encode(false), encode(true)
		noise := make([]int32, 0, 8)
		for range g.below(8) {
			noise = append(noise, int32(g.below(size)))
		}
		decode(ids, g.skip)
		decode(special, true)
		decode(noise, g.skip)
	}
	return hex.EncodeToString(h.Sum(nil))[:8]
}

// specialsOf returns the contents of the added tokens by id, as the reference lists them.
func specialsOf(tok *Tokenizer) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(tok.added.tokens)) {
		out = append(out, tok.added.tokens[id].content)
	}
	return out
}

// The ids and decoded texts of ten thousand generated texts per fixture have the same digests as the reference's.
func TestGeneratedTexts(t *testing.T) {
	var want map[string][]string
	tokenizertest.ReadJSON(t, familyDir+"/digests.json", &want)
	if len(want) != len(tokenizertest.Trained)+len(families) {
		t.Fatalf("digests of %d fixtures, want %d", len(want), len(tokenizertest.Trained)+len(families))
	}
	for name, batches := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := name
			if slices.Contains(families, name) {
				dir = filepath.Join(familyDir, name)
			}
			data, err := os.ReadFile(filepath.Join("testdata", dir, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			tok, err := Load(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			g := newGenerator(t, specialsOf(tok))
			size := countTokens(tok) + 8
			if runtest.Race && !runtest.Long() {
				batches = batches[:5]
			}
			for i, want := range batches {
				if got := g.digest(t, tok, size, 100); got != want {
					t.Fatalf("batch %d: %s, want %s", i, got, want)
				}
			}
		})
	}
}

// countTokens returns the number of tokens, without unused ids. The reference calls it the vocabulary's size.
func countTokens(tok *Tokenizer) int {
	n := tok.model.Size()
	for token := range tok.added.ids {
		if _, ok := tok.model.ID(token); !ok {
			n++
		}
	}
	return n
}

// Texts that repeat one string: an algorithm that scans back or ahead at each position would take minutes.
func TestLongTexts(t *testing.T) {
	toks := map[string]*Tokenizer{}
	for _, name := range families {
		toks[name] = loadFixture(t, filepath.Join(familyDir, name))
	}
	for _, name := range sentencePieces {
		toks[name] = loadSentencePiece(t, name)
	}
	size := 1 << *longTexts
	if runtest.Race && !runtest.Long() {
		size >>= 3
	}
	for _, unit := range []string{"a", " ", "\n", "▁", "日", "\u0301", "the", "<s>", "é ", "!", "1", "\U000f0000",
		"e\u0301", "\u0600", "\u1100", "क\u094d", "<|", "\xff", "\U0001f469\u200d", "aя"} {
		text := strings.Repeat(unit, size/len(unit))
		for name, tok := range toks {
			ids, err := tok.Encode(t.Context(), text, true)
			if err != nil {
				t.Fatalf("%s, %q: %v", name, unit, err)
			}
			if _, err := tok.Decode(ids, false); err != nil {
				t.Fatalf("%s, %q: %v", name, unit, err)
			}
		}
	}
}
