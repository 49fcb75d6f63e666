package pattern

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// ruledPatterns are parts that rules recognize.
var ruledPatterns = []string{
	`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`, `\d{1,3}(?=(?:\d{3})*\b)`, `\p{Nd}{1,2}(?=(\p{Nd}{2})*\b)`,
	`[0-9]{1,4}(?=(?:[0-9]{4})*(?![0-9]))`, `[0-9]{1,3}(?=(?:[0-9]{3})*\b)`, `\s{4}(?!\S)`, `\s{1,2}(?!\S)`, `\s{1}`,
	`\p{N}{1,7}`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s*[\r\n]+|\s{4}(?!\S)|\s{2}(?!\S)|\s{1}`,
}

// scannedPatterns returns the published patterns, and one pattern for each part.
func scannedPatterns() []string {
	llama3 := `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	out := []string{GPT2, llama3, strings.Replace(llama3, "{1,3}", "", 1)}
	for _, text := range ruledPatterns {
		out = append(out, text, text+`|\s+`, text+`| ?\p{L}+|\p{N}`)
	}
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
			if rng.IntN(3) == 0 {
				text = digits(rng) + text
			}
			got, want := bounds(t, s, text), bounds(t, re, text)
			if got != want {
				t.Errorf("%s on %q:\n got %s\nwant %s", expr, text, got, want)
				break
			}
		}
	}
}

// TestBordersAgree is TestScannersAgree for the empty matches between groups of digits.
func TestBordersAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, expr := range []string{`(?=(\d{3})+(?!\d))`, `(?=(?:\p{N}{2})+(?!\p{N}))`, `(?=([0-9]{3})+(?![0-9]))`} {
		s, ok := NewScanner(expr)
		re, err := CompileRegex(jsonfile.Component{Part: "test"}, expr)
		if !ok || err != nil {
			t.Fatalf("%s: no scanner, or %v", expr, err)
		}
		for range 300 {
			text := digits(rng)
			if got, want := places(t, s, text), places(t, re, text); !slices.Equal(got, want) {
				t.Errorf("%s on %q:\n got %v\nwant %v", expr, text, got, want)
				break
			}
		}
	}
}

// digits returns a text of runs of digits.
func digits(rng *rand.Rand) string {
	atoms := []string{"1", "22", "333", "4444444", "\u0661", "²", "x", "_", " ", ".", "Ⅷ", "\u0301", "\n"}
	text := ""
	for range 1 + rng.IntN(12) {
		text += atoms[rng.IntN(len(atoms))]
	}
	return text
}

func places(t testing.TB, p Pattern, s string) (out []int) {
	t.Helper()
	found := func(start, end int) error {
		out = append(out, start, end)
		return nil
	}
	if err := p.Matches(work.Start(t.Context(), work.Limits{}), s, found); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNotRuled: what looks like a rule and is none runs on the general engine.
func TestNotRuled(t *testing.T) {
	for _, expr := range []string{
		`\p{N}{1,3}(?=(?:\p{N}{3})*\b)`,               // \b is also between ² and 1
		`\p{N}{1,3}(?=(?:\p{N}{2})*(?!\p{N}))`,        // other groups
		`\d{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`,           // other digits
		`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\d))`,           //
		`(?=(\d{3})+(?!\p{N}))`, `(?=(\d{3})*(?!\d))`, //
		`\s{4,2}(?!\S)|\s+`, `\s{9999}(?!\S)|\s+`, `\d{1}`, `\s{2}`, `\p{N}{2}`, `\p{N}{1,3}?`,
	} {
		if _, ok := NewScanner(expr); ok {
			t.Errorf("%s has a scanner", expr)
		}
	}
}

// TestLongRuns: a scanner looks at each character of a run a bounded number of times. With 1 MB, a scan per match would
// take minutes.
func TestLongRuns(t *testing.T) {
	runs := map[string]string{}
	for _, unit := range []string{"1", "²", "\u0661", " ", "\n", "\t", "\u3000", "1a", " \n", "a "} {
		run := strings.Repeat(unit, 1<<20/len(unit))
		runs[unit], runs[unit+" and a letter"], runs[unit+" and a mark"] = run, run+"a", run+"!"
	}
	more := []string{`[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\s+`,
		`(?=(\d{3})+(?!\d))`, `(?=(\p{N}{3})+(?!\p{N}))`}
	for _, expr := range slices.Concat(ruledPatterns, more) {
		s, ok := NewScanner(expr)
		if !ok {
			t.Errorf("%s: no scanner", expr)
			continue
		}
		for name, text := range runs {
			last := -1
			err := s.Matches(work.Start(t.Context(), work.Limits{}), text, func(start, end int) error {
				if start < last || end < start {
					t.Fatalf("%s on %q: a match from %d to %d after %d", expr, name, start, end, last)
				}
				last = end
				return nil
			})
			if err != nil {
				t.Errorf("%s on %q: %v", expr, name, err)
			}
		}
	}
}

func bounds(t testing.TB, p Pattern, s string) string {
	t.Helper()
	var b strings.Builder
	err := p.Matches(work.Start(t.Context(), work.Limits{}), s, func(start, end int) error {
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
	re.tries = 2
	ended, end := context.WithCancel(t.Context())
	end()
	for want, m := range map[error]*work.Meter{
		fault.ErrTimeout: work.Start(t.Context(), work.Limits{}),
		context.Canceled: work.Start(ended, work.Limits{}),
		work.ErrLimit:    work.Start(t.Context(), work.Limits{Units: 1}),
	} {
		err = re.Matches(m, strings.Repeat("a", 60)+"!1", func(int, int) error { return nil })
		tokenizertest.CheckError(t, slow, err, want)
	}
}
