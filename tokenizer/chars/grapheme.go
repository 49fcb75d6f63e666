package chars

import "unicode/utf8"

// Hangul syllable types (Unicode 16, HangulSyllableType.txt).
const (
	hangulNone = iota
	hangulL
	hangulV
	hangulT
	hangulLV
	hangulLVT
)

func hangulType(c rune) int {
	switch {
	case c < 0x1100:
		return hangulNone
	case c <= 0x115f, c >= 0xa960 && c <= 0xa97c:
		return hangulL
	case c <= 0x11a7, c >= 0xd7b0 && c <= 0xd7c6:
		return hangulV
	case c <= 0x11ff, c >= 0xd7cb && c <= 0xd7fb:
		return hangulT
	case c >= HangulBase && c < HangulEnd:
		if (c-HangulBase)%TrailCount == 0 {
			return hangulLV
		}
		return hangulLVT
	}
	return hangulNone
}

// GraphemeEnd returns the end of the extended grapheme cluster that starts at i (Unicode Standard Annex 29, rules GB3
// to GB13).
func GraphemeEnd(t *propertyTable, s string, i int) int {
	c, n := utf8.DecodeRuneInString(s[i:])
	end := i + n
	if c == '\r' && end < len(s) && s[end] == '\n' {
		return end + 1
	}
	class := t.breakClass(c)
	pictograph := class == breakPictograph // ends with a pictograph and marks after it
	joined := false                        // ... and then a zero-width joiner
	conjunct := class == breakConsonant    // ends with a consonant and characters allowed in a conjunct
	linked := false                        // ... with a linker among them
	regional := isRegional(c)              // ends with an odd number of regional indicators
	for end < len(s) && class != breakControl {
		if class < breakPrepend && s[end] < utf8.RuneSelf { // no ASCII character joins
			return end
		}
		next, n := utf8.DecodeRuneInString(s[end:])
		nextClass := t.breakClass(next)
		join := false
		switch nextClass {
		case breakControl:
			return end
		case breakJoins, breakJoinsConjunct, breakLinker:
			join = true
		case breakPictograph:
			join = joined
		case breakConsonant:
			join = linked
		}
		if !join {
			join = class == breakPrepend || hangulJoins(hangulType(c), hangulType(next)) || regional && isRegional(next)
		}
		if !join {
			return end
		}
		switch {
		case nextClass == breakPictograph:
			pictograph, joined = true, false
		case next == 0x200d:
			joined = pictograph
		case nextClass < breakJoins || nextClass > breakLinker:
			pictograph, joined = false, false
		default:
			joined = false
		}
		switch nextClass {
		case breakConsonant:
			conjunct, linked = true, false
		case breakLinker:
			linked = conjunct
		case breakJoinsConjunct:
		default:
			conjunct, linked = false, false
		}
		regional = isRegional(next) && !regional
		c, class = next, nextClass
		end += n
	}
	return end
}

func isRegional(c rune) bool { return c >= 0x1f1e6 && c <= 0x1f1ff }

func hangulJoins(a, b int) bool {
	switch a {
	case hangulL:
		return b == hangulL || b == hangulV || b == hangulLV || b == hangulLVT
	case hangulV, hangulLV:
		return b == hangulV || b == hangulT
	case hangulT, hangulLVT:
		return b == hangulT
	}
	return false
}

// Hangul syllables compose by rule (Unicode 9.0, section 3.12).
const (
	HangulBase = 0xac00
	HangulEnd  = 0xd7a4
	LeadBase   = 0x1100
	VowelBase  = 0x1161
	TrailBase  = 0x11a7
	LeadCount  = 19
	VowelCount = 21
	TrailCount = 28
)
