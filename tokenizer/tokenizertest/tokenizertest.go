// Package tokenizertest has what the tests of the tokenizer's packages share.
//
// Contract: it is for tests only and knows no package of the tokenizer.
package tokenizertest

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var Trained = []string{"gpt2", "starcoder", "llama3", "qwen", "qwen35", "o200k", "deepseek"}

// ReadJSON reads a file beside the test, below testdata.
func ReadJSON(t testing.TB, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// CheckError requires a one-line error of the kind want.
func CheckError(t *testing.T, what string, err, want error) {
	t.Helper()
	if len(what) > 80 {
		what = what[:80]
	}
	switch {
	case err == nil:
		t.Errorf("%s: no error", what)
	case !errors.Is(err, want):
		t.Errorf("%s: got %v, want %v", what, err, want)
	case strings.ContainsAny(err.Error(), "\n\r"):
		t.Errorf("%s: the error has more than one line: %q", what, err)
	}
}

var scanAtoms = []string{
	"a", "b", "Z", "s", "t", "l", "re", "ll", "LL", "'", "'s", "'S", "'\u017f", "'Ve", "\u2019", "é", "É", "ǅ", "ʰ", "日",
	"本", "か", "カ", "ª",
	"\u0301", "\u0903", "\u20dd", "1", "23", "٣", "²", "Ⅷ", " ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u3000",
	"\u0085", "\u2028", "\u200b",
	"!", "/", "-", ".", "_", "$", "+", "€", "«", "、", "😀", "\u200d", "\x00", "\x7f", "\U00010d50", "\U000105c0", "\ufffd",
	"\U0010ffff",
}

// ScanText returns a random text of n atoms, which the parts of patterns tell apart.
func ScanText(rng *rand.Rand, n int) string {
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
