package pdf

import (
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// glyph returns the text of a glyph's name, or "". Names are those of the Adobe Glyph List as far as Latin, Greek and
// Cyrillic text and its punctuation need them, and its general rules: suffixes, ligatures and hexadecimal codes.
func glyph(n string) string {
	n, _, _ = strings.Cut(n, ".")
	if len(n) > 64 {
		return ""
	}
	var out strings.Builder
	for part := range strings.SplitSeq(n, "_") {
		out.WriteString(oneGlyph(part))
	}
	return out.String()
}

func oneGlyph(n string) string {
	if s, ok := glyphNames[n]; ok {
		return s
	}
	if len(n) == 1 && (n[0] >= 'A' && n[0] <= 'Z' || n[0] >= 'a' && n[0] <= 'z') {
		return n
	}
	if s := hexGlyph(n); s != "" {
		return s
	}
	for mark, combining := range marks {
		letter, ok := strings.CutSuffix(n, mark)
		if !ok {
			continue
		}
		base := greekOrLatin(letter)
		if base == "" {
			continue
		}
		if s := norm.NFC.String(base + combining); len([]rune(s)) == 1 {
			return s
		}
	}
	return greekOrLatin(n)
}

// greekOrLatin returns the letter of a name without a mark, or "".
func greekOrLatin(n string) string {
	if n == "dotlessi" {
		return "ı"
	}
	if len(n) == 1 {
		return n
	}
	lower := strings.ToLower(n)
	i := 0
	for name := range strings.SplitSeq(greek, " ") {
		if name == lower {
			letter := []rune("αβγδεζηθικλμνξοπρςστυφχψω")[i]
			if n[0] >= 'A' && n[0] <= 'Z' {
				return strings.ToUpper(string(letter))
			}
			return string(letter)
		}
		i++
	}
	if code, ok := strings.CutPrefix(n, "afii"); ok {
		if k, err := strconv.Atoi(code); err == nil {
			return cyrillic(k)
		}
	}
	return ""
}

const greek = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma1 " +
	"sigma tau upsilon phi chi psi omega"

// cyrillic returns the letter of a number after "afii", or "".
func cyrillic(k int) string {
	switch {
	case k == 10023:
		return "Ё"
	case k == 10071:
		return "ё"
	case k >= 10017 && k < 10023:
		return string(rune('А' + k - 10017))
	case k > 10023 && k <= 10049:
		return string(rune('А' + k - 10018))
	case k >= 10065 && k < 10071:
		return string(rune('а' + k - 10065))
	case k > 10071 && k <= 10097:
		return string(rune('а' + k - 10066))
	}
	return ""
}

// hexGlyph returns the text of names such as uni00E9 and u1F600, or "".
func hexGlyph(n string) string {
	if digits, ok := strings.CutPrefix(n, "uni"); ok && len(digits) >= 4 && len(digits)%4 == 0 {
		var out strings.Builder
		for ; digits != ""; digits = digits[4:] {
			c, err := strconv.ParseUint(digits[:4], 16, 32)
			if err != nil {
				return ""
			}
			out.WriteRune(rune(c))
		}
		return out.String()
	}
	if digits, ok := strings.CutPrefix(n, "u"); ok && len(digits) >= 4 && len(digits) <= 6 {
		if c, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return string(rune(c))
		}
	}
	return ""
}

// marks are what follows a letter in a glyph's name, as combining characters.
var marks = map[string]string{
	"grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303", "macron": "\u0304",
	"breve": "\u0306", "dotaccent": "\u0307", "dieresis": "\u0308", "ring": "\u030A", "hungarumlaut": "\u030B",
	"caron": "\u030C", "cedilla": "\u0327", "commaaccent": "\u0327", "ogonek": "\u0328", "tonos": "\u0301",
	"dieresistonos": "\u0308\u0301", "dot": "\u0307",
}

// glyphNames are names that no rule covers.
var glyphNames = pairs(`space   nbspace   nonbreakingspace   exclam ! quotedbl " numbersign # dollar $ percent %
ampersand & quotesingle ' parenleft ( parenright ) asterisk * plus + comma , hyphen - sfthyphen - softhyphen -
minus − period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ;
less < equal = greater > question ? at @ bracketleft [
backslash \ bracketright ] asciicircum ^ underscore _ grave ` + "` quoteleft ‘" + `
quoteright ’ quotedblleft “ quotedblright ” quotesinglbase ‚ quotedblbase „ guilsinglleft ‹ guilsinglright ›
guillemotleft « guillemotright » braceleft { bar | braceright } asciitilde ~ exclamdown ¡ questiondown ¿ cent ¢
sterling £ currency ¤ yen ¥ Euro € brokenbar ¦ section § dieresis ¨ copyright © registered ® trademark ™ ordfeminine ª
ordmasculine º logicalnot ¬ macron ¯ degree ° plusminus ± onesuperior ¹ twosuperior ² threesuperior ³ acute ´ mu µ
paragraph ¶ periodcentered · middot · cedilla ¸ onequarter ¼ onehalf ½ threequarters ¾ multiply × divide ÷ florin ƒ
circumflex ˆ tilde ˜ breve ˘ dotaccent ˙ ring ˚ hungarumlaut ˝ ogonek ˛ caron ˇ endash – emdash — figuredash ‒ bullet •
ellipsis … dagger † daggerdbl ‡ perthousand ‰ fraction ⁄ AE Æ ae æ OE Œ oe œ Oslash Ø oslash ø Lslash Ł lslash ł Eth Ð
eth ð Thorn Þ thorn þ germandbls ß Dcroat Đ dcroat đ Hbar Ħ hbar ħ kgreenlandic ĸ Ldot Ŀ ldot ŀ napostrophe ŉ Eng Ŋ
eng ŋ Tbar Ŧ tbar ŧ longs ſ fi fi fl fl ff ff ffi ffi ffl ffl IJ IJ ij ij summation ∑ product ∏ radical √ infinity ∞
integral ∫ approxequal ≈ notequal ≠ lessequal ≤ greaterequal ≥ partialdiff ∂ lozenge ◊ arrowleft ← arrowup ↑
arrowright → arrowdown ↓ arrowboth ↔ arrowdblright ⇒ element ∈ notelement ∉ emptyset ∅ gradient ∇ universal ∀
existential ∃ intersection ∩ union ∪ similar ∼ congruent ≅ equivalence ≡ proportional ∝ angle ∠ therefore ∴
checkmark ✓ heart ♥ club ♣ spade ♠ diamond ♦ Ohm Ω Omega Ω Delta Δ epsilon1 ϵ theta1 ϑ phi1 φ omega1 ϖ
estimated ℮ numero № afii61352 № minute ′ second ″ asteriskmath ∗ dotmath ⋅ logicaland ∧ logicalor ∨ reflexsubset ⊆
propersubset ⊂ circleplus ⊕ circlemultiply ⊗ perpendicular ⊥ square □ filledbox ■ circle ○ H18533 ■ triagup ▲
triagdn ▼ dblverticalbar ∥ bardbl ∥ compwordmark ` + "\u200C " + `visiblespace ␣ nul ` + "\u200B")

// pairs reads names, each followed by its text. White space as text is a space.
func pairs(list string) map[string]string {
	m := map[string]string{}
	for list = strings.TrimLeft(strings.ReplaceAll(list, "\n", " "), " "); list != ""; {
		name, rest, _ := strings.Cut(list, " ")
		if strings.HasPrefix(rest, "  ") {
			m[name], list = " ", rest[2:]
			continue
		}
		text, after, _ := strings.Cut(rest, " ")
		m[name], list = text, after
	}
	return m
}

// charset is a single-byte encoding, which has a rune for each byte, or 0.
type charset [256]rune

func (c *charset) code(b byte) rune { return c[b] }

var (
	winAnsi  = fromCharmap(charmap.Windows1252)
	macRoman = fromCharmap(charmap.Macintosh)
	standard = standardSet()
	symbols  = symbolSet()
	textSet  = pdfDocSet()
)

func fromCharmap(m *charmap.Charmap) *charset {
	var c charset
	for i := range c {
		if r := m.DecodeByte(byte(i)); i >= ' ' && i != 127 && r != '\uFFFD' {
			c[i] = r
		}
	}
	return &c
}

// standardSet is Adobe's encoding of Latin text.
func standardSet() *charset {
	var c charset
	for i := ' '; i < 127; i++ {
		c[i] = i
	}
	c['\''], c['`'] = '’', '‘'
	for at, list := range map[int]string{
		0xA1: "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ", 0xB1: "–†‡·", 0xB6: "¶•‚„”»…‰", 0xBF: "¿", 0xC1: "`´ˆ˜¯˘˙¨", 0xCA: "˚¸", 0xCD: "˝˛ˇ—",
		0xE1: "Æ", 0xE3: "ª", 0xE8: "ŁØŒº", 0xF1: "æ", 0xF5: "ı", 0xF8: "łøœß",
	} {
		for i, r := range []rune(list) {
			c[at+i] = r
		}
	}
	return &c
}

// pdfDocSet is the encoding of text that is not shown on a page, such as a title.
func pdfDocSet() *charset {
	c := *fromCharmap(charmap.ISO8859_1)
	for i, r := range []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž") {
		c[0x80+i] = r
	}
	c[0x9F], c[0xA0], c['\t'], c['\n'], c['\r'] = 0, '€', ' ', ' ', ' '
	return &c
}

// symbolSet is the encoding of the font Symbol, as far as it has letters and common signs.
func symbolSet() *charset {
	var c charset
	for i := ' '; i < '@'; i++ {
		c[i] = i
	}
	for at, list := range map[int]string{
		'A': "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_",
		'a': "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼", 0xA3: "≤⁄∞", 0xAB: "↔←↑→↓°±″≥×∝∂•÷≠≡≈…",
	} {
		for i, r := range []rune(list) {
			c[at+i] = r
		}
	}
	return &c
}
