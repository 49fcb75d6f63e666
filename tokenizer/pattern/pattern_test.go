package pattern

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// scannedPatterns returns the published patterns, and one pattern for each part.
func scannedPatterns() []string {
	llama3 := `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	out := []string{GPT2, llama3, strings.Replace(llama3, "{1,3}", "", 1)}
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
		s, ok := NewScanner(expr)
		if !ok {
			t.Errorf("%s: no scanner", expr)
			continue
		}
		re, err := CompileRegex(jsonfile.Component{Part: "test"}, expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		for range 60 {
			text := tokenizertest.ScanText(rng, 1+rng.IntN(24))
			got, want := bounds(t, s, text), bounds(t, re, text)
			if got != want {
				t.Errorf("%s on %q:\n got %s\nwant %s", expr, text, got, want)
				break
			}
		}
	}
}

func bounds(t testing.TB, p Pattern, s string) string {
	t.Helper()
	var b strings.Builder
	err := p.Matches(s, func(start, end int) error {
		fmt.Fprintf(&b, "%q ", s[start:end])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRefusedPatterns(t *testing.T) {
	invalid, unsupported := fault.ErrInvalid, fault.ErrUnsupported
	for expr, want := range map[string]error{
		`(`: invalid, `a)`: invalid, `*`: invalid, `[`: invalid, `[a`: invalid, `[b-a]`: invalid,
		`\`: invalid, `[]`: invalid,
		`a{200000}`: invalid, `\u12`: invalid,
		`[\b]`: unsupported, `\G`: unsupported, `(a)\1`: unsupported, `(?<n>a)`: unsupported,
		`(?x)a b`: unsupported, `\K`: unsupported,
		`\R`: unsupported, `\X`: unsupported, `(?i)ß`: unsupported, `(?i)ss`: unsupported,
		`(?i:\p{Lu})`: unsupported, `\p{Greek}`: unsupported,
		`[[:alpha:]]`: unsupported, `a{b`: unsupported, `(?=a)*`: unsupported, `\pL`: unsupported,
		`(?~a)`: unsupported, `a{3,1}`: unsupported,
		strings.Repeat(`(`, 1000) + `a` + strings.Repeat(`)`, 1000): unsupported,
		strings.Repeat(`\p{L}`, 2000):                               unsupported,
	} {
		_, err := newRegex(jsonfile.Component{Part: "pre_tokenizer", Name: "Split"}, expr)
		tokenizertest.CheckError(t, expr, err, want)
	}
}

func TestSlowPattern(t *testing.T) {
	const slow = `(?:a|aa)+\z`
	re, err := CompileRegex(jsonfile.Component{Part: "pre_tokenizer", Name: "Split"}, slow)
	if err != nil {
		t.Fatal(err)
	}
	re.re.MatchTimeout = 1e6 // a millisecond
	err = re.Matches(strings.Repeat("a", 60)+"!1", func(int, int) error { return nil })
	tokenizertest.CheckError(t, slow, err, fault.ErrTimeout)
}
