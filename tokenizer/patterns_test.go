package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPatterns compares the pieces of Split with the reference's, for the scanners and the general engine.
func TestPatterns(t *testing.T) {
	var golden struct {
		Texts    []string `json:"texts"`
		Patterns []struct {
			Kind    string `json:"kind"`
			Pattern string `json:"pattern"`
			Pieces  []struct {
				Behavior string   `json:"behavior"`
				Invert   bool     `json:"invert"`
				Pieces   []string `json:"pieces"`
			} `json:"pieces"`
		} `json:"patterns"`
	}
	readJSON(t, "patterns.json", &golden)
	for _, p := range golden.Patterns {
		t.Run(p.Kind+" "+p.Pattern, func(t *testing.T) {
			c := component{part: "pre_tokenizer", name: "Split"}
			engines := map[string]pattern{}
			if p.Kind == "String" {
				engines["literal"] = literal(p.Pattern)
			} else {
				re, err := compileRegex(c, p.Pattern)
				if err != nil {
					t.Fatal(err)
				}
				engines["general"] = re
				if s, ok := newScanner(p.Pattern); ok {
					engines["scanner"] = s
				}
			}
			for name, engine := range engines {
				for i, want := range p.Pieces {
					s := split{engine, behaviours[want.Behavior], want.Invert}
					got := pieces(t, s, golden.Texts[i])
					if !slices.Equal(got, want.Pieces) {
						t.Errorf("%s, %s, invert %v, %q:\n got %q\nwant %q",
							name, want.Behavior, want.Invert, golden.Texts[i], got, want.Pieces)
					}
				}
			}
		})
	}
}

func pieces(t testing.TB, p preTokenizer, s string) []string {
	t.Helper()
	var out []string
	err := p.pieces(s, true, func(piece string, _ bool) error {
		out = append(out, piece)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// scannedPatterns returns the published patterns, and one pattern for each part.
func scannedPatterns() []string {
	llama3 := `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	out := []string{gpt2Pattern, llama3, strings.Replace(llama3, "{1,3}", "", 1)}
	for text := range scanParts {
		if strings.HasPrefix(text, camelLower) {
			text += "|" + camelUpper
		}
		out = append(out, text+`|\s+`)
	}
	slices.Sort(out)
	return out
}

// TestScannersAgree compares each part of the scanners, and the published patterns, with the general engine on random
// texts of characters that the parts distinguish.
func TestScannersAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, expr := range scannedPatterns() {
		s, ok := newScanner(expr)
		if !ok {
			t.Errorf("%s: no scanner", expr)
			continue
		}
		re, err := compileRegex(component{part: "test"}, expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		for range 60 {
			text := scanText(rng, 1+rng.IntN(24))
			got, want := bounds(t, s, text), bounds(t, re, text)
			if got != want {
				t.Errorf("%s on %q:\n got %s\nwant %s", expr, text, got, want)
				break
			}
		}
	}
}

func bounds(t testing.TB, p pattern, s string) string {
	t.Helper()
	var b strings.Builder
	err := p.matches(s, func(start, end int) error {
		fmt.Fprintf(&b, "%q ", s[start:end])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var scanAtoms = []string{
	"a", "b", "Z", "s", "t", "l", "re", "ll", "LL", "'", "'s", "'S", "'\u017f", "'Ve", "\u2019", "é", "É", "ǅ", "ʰ", "日",
	"本", "か", "カ", "ª",
	"\u0301", "\u0903", "\u20dd", "1", "23", "٣", "²", "Ⅷ", " ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u3000",
	"\u0085", "\u2028", "\u200b",
	"!", "/", "-", ".", "_", "$", "+", "€", "«", "、", "😀", "\u200d", "\x00", "\x7f", "\U00010d50", "\U000105c0", "\ufffd",
	"\U0010ffff",
}

func scanText(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		if rng.IntN(20) == 0 {
			if c := rune(rng.IntN(utf8.MaxRune + 1)); utf8.ValidRune(c) {
				b.WriteRune(c)
			}
			continue
		}
		b.WriteString(scanAtoms[rng.IntN(len(scanAtoms))])
	}
	return b.String()
}

func TestKnownPatternsHaveScanners(t *testing.T) {
	for _, name := range trained {
		var file struct {
			Pre json.RawMessage `json:"pre_tokenizer"`
		}
		readJSON(t, name+"/tokenizer.json", &file)
		r, err := newJSONReader("pre_tokenizer", file.Pre)
		if err != nil {
			t.Fatal(err)
		}
		n, err := r.value()
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPreTokenizer(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range p.(preTokenizers) {
			if s, ok := step.(split); ok {
				if _, ok := s.p.(*regex); ok {
					t.Errorf("%s: the general engine runs %s", name, s.p.(*regex).label)
				}
			}
		}
	}
}

func TestRefusedPatterns(t *testing.T) {
	for expr, want := range map[string]error{
		`(`: ErrInvalid, `a)`: ErrInvalid, `*`: ErrInvalid, `[`: ErrInvalid, `[a`: ErrInvalid, `[b-a]`: ErrInvalid,
		`\`: ErrInvalid, `[]`: ErrInvalid,
		`a{200000}`: ErrInvalid, `\u12`: ErrInvalid,
		`[\b]`: ErrUnsupported, `\G`: ErrUnsupported, `(a)\1`: ErrUnsupported, `(?<n>a)`: ErrUnsupported,
		`(?x)a b`: ErrUnsupported, `\K`: ErrUnsupported,
		`\R`: ErrUnsupported, `\X`: ErrUnsupported, `(?i)ß`: ErrUnsupported, `(?i)ss`: ErrUnsupported,
		`(?i:\p{Lu})`: ErrUnsupported, `\p{Greek}`: ErrUnsupported,
		`[[:alpha:]]`: ErrUnsupported, `a{b`: ErrUnsupported, `(?=a)*`: ErrUnsupported, `\pL`: ErrUnsupported,
		`(?~a)`: ErrUnsupported, `a{3,1}`: ErrUnsupported,
		strings.Repeat(`(`, 1000) + `a` + strings.Repeat(`)`, 1000): ErrUnsupported,
		strings.Repeat(`\p{L}`, 2000):                               ErrUnsupported,
	} {
		_, err := newRegex(component{part: "pre_tokenizer", name: "Split"}, expr)
		checkError(t, expr, err, want)
	}
}

func TestSlowPattern(t *testing.T) {
	const slow = `(?:a|aa)+\z`
	re, err := compileRegex(component{part: "pre_tokenizer", name: "Split"}, slow)
	if err != nil {
		t.Fatal(err)
	}
	re.re.MatchTimeout = 1e6 // a millisecond
	err = re.matches(strings.Repeat("a", 60)+"!1", func(int, int) error { return nil })
	checkError(t, slow, err, ErrTimeout)
}
