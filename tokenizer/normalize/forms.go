package normalize

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"golang.org/x/text/unicode/norm"
)

// unicodeForm is a normalization form with the reference's Unicode version, 9.0. Characters added later stay as they
// are and have combining class 0. x/text supplies the data, which never changes for older characters, and the quick
// check. Its own normalizer is not usable: it inserts U+034F into runs of more than 30 marks, which the reference does
// not.
type unicodeForm struct{ form norm.Form }

func (f unicodeForm) Normalize(p *Pass, s string) (string, error) {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf {
		i++
	}
	if i == len(s) || f.form.IsNormalString(s) { // text that is normal in the newer version is normal in the older
		return s, nil
	}
	// ASCII characters never combine with the characters before them, so the text splits into islands: at most one ASCII
	// character and the non-ASCII characters after it.
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	var work []normRune
	start := max(i-1, 0)
	b.WriteString(s[:start])
	for start < len(s) {
		if b.Len() > p.Room {
			return "", p.tooLong()
		}
		end := start + 1
		if s[start] >= utf8.RuneSelf {
			end = start
		}
		for end < len(s) && s[end] >= utf8.RuneSelf {
			end++
		}
		if err := p.Spend(islandWork * (end - start)); err != nil {
			return "", err
		}
		if island := s[start:end]; len(island) == 1 || f.form.IsNormalString(island) {
			b.WriteString(island)
		} else {
			work = f.island(work[:0], island)
			for _, r := range work {
				b.WriteRune(r.c)
			}
		}
		start = end
	}
	return b.String(), nil
}

// islandWork is what a byte of an island costs.
const islandWork = 32

type normRune struct {
	c     rune
	class uint8
}

// island decomposes, reorders and, for composed forms, composes (UAX 15, Unicode 9.0).
func (f unicodeForm) island(out []normRune, s string) []normRune {
	table := chars.Characters()
	decomposed := norm.NFD
	if f.form == norm.NFKC || f.form == norm.NFKD {
		decomposed = norm.NFKD
	}
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case !table.Active(c):
			out = append(out, normRune{c, 0})
		case c >= chars.HangulBase && c < chars.HangulEnd:
			out = decomposeHangul(out, c)
		default:
			p := decomposed.PropertiesString(s[i : i+n])
			d := p.Decomposition()
			if d == nil {
				out = append(out, normRune{c, p.CCC()})
			}
			for len(d) > 0 {
				c, n := utf8.DecodeRune(d)
				out = append(out, normRune{c, decomposed.Properties(d).CCC()})
				d = d[n:]
			}
		}
		i += n
	}
	order(out)
	if f.form == norm.NFC || f.form == norm.NFKC {
		out = compose(out)
	}
	return out
}

// order sorts each run of marks by combining class.
func order(out []normRune) {
	for i := 0; i < len(out); {
		if out[i].class == 0 {
			i++
			continue
		}
		end := i
		for end < len(out) && out[end].class != 0 {
			end++
		}
		slices.SortStableFunc(out[i:end], func(a, b normRune) int { return int(a.class) - int(b.class) })
		i = end
	}
}

// compose composes each starter with the marks that are not blocked from it.
func compose(out []normRune) []normRune {
	starter, n := -1, 0
	var last uint8 // class of the previous character, 0 right after the starter
	for _, r := range out {
		if starter >= 0 && (n == starter+1 || last != 0 && last < r.class) {
			if c, ok := composePair(out[starter].c, r.c); ok {
				out[starter].c = c
				continue
			}
		}
		if r.class == 0 {
			starter = n
		}
		last = r.class
		out[n] = r
		n++
	}
	return out[:n]
}

func decomposeHangul(out []normRune, c rune) []normRune {
	c -= chars.HangulBase
	out = append(out, normRune{chars.LeadBase + c/(chars.VowelCount*chars.TrailCount), 0}, normRune{chars.VowelBase +
		c/chars.TrailCount%chars.VowelCount, 0})
	if t := c % chars.TrailCount; t != 0 {
		out = append(out, normRune{chars.TrailBase + t, 0})
	}
	return out
}

func composePair(a, b rune) (rune, bool) {
	switch {
	case a >= chars.LeadBase && a < chars.LeadBase+chars.LeadCount && b >= chars.VowelBase &&
		b < chars.VowelBase+chars.VowelCount:
		return chars.HangulBase + ((a-chars.LeadBase)*chars.VowelCount+b-chars.VowelBase)*chars.TrailCount, true
	case a >= chars.HangulBase && a < chars.HangulEnd && (a-chars.HangulBase)%chars.TrailCount == 0 &&
		b > chars.TrailBase && b < chars.TrailBase+chars.TrailCount:
		return a + b - chars.TrailBase, true
	}
	c, ok := compositions()[[2]rune{a, b}]
	return c, ok
}

// compositions maps pairs to their NFC compositions, about a thousand.
var compositions = sync.OnceValue(func() map[[2]rune]rune {
	table := chars.Characters()
	pairs := map[[2]rune]rune{}
	for c := rune(0xc0); c < 0x30000; c++ {
		if !table.Active(c) || c >= chars.HangulBase && c < chars.HangulEnd {
			continue
		}
		s := string(c)
		d := norm.NFD.PropertiesString(s).Decomposition()
		if d == nil || norm.NFC.String(s) != s { // otherwise it is excluded from composition
			continue
		}
		b, n := utf8.DecodeLastRune(d)
		first := norm.NFC.String(string(d[:len(d)-n]))
		if a, m := utf8.DecodeRuneInString(first); m == len(first) {
			pairs[[2]rune{a, b}] = c
		}
	}
	return pairs
})
