package normalize

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
	"golang.org/x/text/unicode/norm"
)

func TestUnicodeForms(t *testing.T) {
	var golden []map[string]string
	tokenizertest.ReadJSON(t, "../../testdata/normalize.json", &golden)
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	for _, c := range golden {
		for name, form := range forms {
			got, err := unicodeForm{form}.Normalize(NewPass(work.Start(t.Context(), work.Limits{}), 1<<20), c["text"])
			if err != nil || got != c[name] {
				t.Errorf("%s of %+q:\n got %+q\nwant %+q (%v)", name, c["text"], got, c[name], err)
			}
		}
	}
}

// Long runs of marks get no U+034F inserted, and sorting them takes no quadratic time.
func TestManyMarks(t *testing.T) {
	const n = 200_000
	p := NewPass(work.Start(t.Context(), work.Limits{}), 4*n)
	got, err := unicodeForm{norm.NFC}.Normalize(p, "x"+strings.Repeat("\u0302\u0323", n))
	if want := "x\u0323" + strings.Repeat("\u0323", n-1) + strings.Repeat("\u0302", n); err != nil || got != want {
		t.Errorf("%d bytes, want %d, %v", len(got), len(want), err)
	}
}
