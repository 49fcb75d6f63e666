package grammar

import "unicode/utf8"

// JSON text (RFC 8259) as Python's json.dumps writes it.

// jsonRules are the rules of JSON. Each is compiled once per grammar, however often it is called.
type jsonRules struct {
	valueRule, objectRule, arrayRule, stringRule, numberRule, integerRule *rule
}

func newJSONRules() *jsonRules {
	j := &jsonRules{valueRule: &rule{name: "value"}, objectRule: &rule{name: "object"}, arrayRule: &rule{name: "array"},
		stringRule: &rule{name: "string"}, numberRule: &rule{name: "number"}, integerRule: &rule{name: "integer"}}
	j.valueRule.body = altExpr(j.object(), j.array(), j.string(), j.number(), wordsExpr([]string{"true", "false", "null"}))
	member := seqExpr(j.string(), textExpr(": "), j.value())
	j.objectRule.body = seqExpr(textExpr("{"), optExpr(listExpr(member)), textExpr("}"))
	j.arrayRule.body = seqExpr(textExpr("["), optExpr(listExpr(j.value())), textExpr("]"))
	j.stringRule.body = quoted(repeatExpr(anyChar, 0, -1))
	j.numberRule.body = numberExpr()
	j.integerRule.body = integerExpr
	return j
}

func (j *jsonRules) value() *expr   { return callExpr(j.valueRule) }
func (j *jsonRules) object() *expr  { return callExpr(j.objectRule) }
func (j *jsonRules) array() *expr   { return callExpr(j.arrayRule) }
func (j *jsonRules) string() *expr  { return callExpr(j.stringRule) }
func (j *jsonRules) number() *expr  { return callExpr(j.numberRule) }
func (j *jsonRules) integer() *expr { return callExpr(j.integerRule) }

// listExpr matches one or more of e, separated by ", ".
func listExpr(e *expr) *expr {
	return seqExpr(e, repeatExpr(seqExpr(textExpr(", "), e), 0, -1))
}

func quoted(e *expr) *expr { return seqExpr(textExpr(`"`), e, textExpr(`"`)) }

var (
	digits   = setExpr(byteRange('0', '9'))
	positive = setExpr(byteRange('1', '9'))
	hexDigit = setExpr(byteRange('0', '9').or(byteRange('a', 'f')).or(byteRange('A', 'F')))
	boolean  = wordsExpr([]string{"true", "false"})
	null     = textExpr("null")

	// needsEscape are the characters that a JSON string must escape.
	needsEscape = runeSet{0, 0x1f, '"', '"', '\\', '\\'}
	plainChar   = utf8Expr(needsEscape.not())
	anyChar     = altExpr(plainChar, escape)
	// escape matches any escape of one character. A high surrogate must be followed by a low one.
	escape = seqExpr(textExpr(`\`), altExpr(
		setExpr(bytesOf(`"\/bfnrt`)),
		seqExpr(textExpr("u"), altExpr(
			seqExpr(setExpr(bytesOf("0123456789abcefABCEF")), hexDigit, hexDigit, hexDigit),
			seqExpr(setExpr(bytesOf("dD")), setExpr(byteRange('0', '7')), hexDigit, hexDigit),
			seqExpr(setExpr(bytesOf("dD")), setExpr(bytesOf("89abAB")), hexDigit, hexDigit, textExpr(`\u`),
				setExpr(bytesOf("dD")), setExpr(bytesOf("cdefCDEF")), hexDigit, hexDigit),
		)),
	))
)

func bytesOf(s string) (set byteSet) {
	for i := range len(s) {
		set.add(s[i])
	}
	return set
}

// charExpr matches one character of s inside a JSON string: unescaped, or with the escape that it requires.
func charExpr(s runeSet) *expr {
	parts := []*expr{utf8Expr(s.and(needsEscape.not()))}
	escaped := s.and(needsEscape)
	for i := 0; i < len(escaped); i += 2 {
		for r := escaped[i]; r <= escaped[i+1]; r++ {
			parts = append(parts, wordsExpr(escapesOf(r)))
		}
	}
	return altExpr(parts...)
}

// escapesOf returns the escapes that json.dumps and other encoders write for a character; json.dumps's is the first.
func escapesOf(r rune) []string {
	switch r {
	case '"', '\\':
		return []string{`\` + string(r)}
	case '\b':
		return []string{`\b`, `\u0008`}
	case '\f':
		return []string{`\f`, `\u000c`}
	case '\n':
		return []string{`\n`, `\u000a`}
	case '\r':
		return []string{`\r`, `\u000d`}
	case '\t':
		return []string{`\t`, `\u0009`}
	}
	return []string{unicodeEscape(r)}
}

func unicodeEscape(r rune) string {
	const digits = "0123456789abcdef"
	return `\u` + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// dumpString appends s as json.dumps writes it; ascii is its ensure_ascii option, which is Python's default.
func dumpString(b []byte, s string, ascii bool) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case needsEscape.has(r):
			b = append(b, escapesOf(r)[0]...)
		case ascii && r > 0xffff:
			r -= 0x10000
			b = append(b, unicodeEscape(0xd800+r>>10)+unicodeEscape(0xdc00+r&0x3ff)...)
		case ascii && r >= 0x7f:
			b = append(b, unicodeEscape(r)...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// Limits of numbers: digits of an integer, and characters in all.
const (
	maxDigits = 19
	maxNumber = 32
)

// integerExpr matches an integer of at most 19 digits.
var integerExpr = altExpr(seqExpr(optExpr(textExpr("-")), positive, repeatExpr(digits, 0, maxDigits-1)), textExpr("0"))

// numberExpr matches a number of at most 32 characters, with at most 19 digits before the point, within the range of a
// float64. The exponent has two digits; three are allowed if it is negative, or after a single digit if the number
// stays below 1e308.
func numberExpr() *expr {
	sign := setExpr(bytesOf("+-"))
	e := setExpr(bytesOf("eE"))
	exponent := seqExpr(e, optExpr(sign), digits, optExpr(digits)) // 4 characters
	small := seqExpr(e, textExpr("-"), digits, digits, digits)     // 5
	large := seqExpr(e, optExpr(textExpr("+")), altExpr(seqExpr(setExpr(bytesOf("12")), digits, digits),
		seqExpr(textExpr("30"), setExpr(byteRange('0', '7'))))) // 5
	exponents := func(left int, single bool) *expr {
		var parts []*expr
		if left >= 4 {
			parts = append(parts, exponent)
		}
		if left >= 5 {
			if parts = append(parts, small); single {
				parts = append(parts, large)
			}
		}
		return optExpr(altExpr(parts...))
	}
	// The possible continuations after a digit of the fraction, by the number of characters left. Equal continuations are
	// one expr.
	fractions := func(single bool) []*expr {
		after := make([]*expr, maxNumber+1)
		for left := range after {
			after[left] = exponents(left, single)
			if left > 0 {
				after[left] = altExpr(seqExpr(digits, after[left-1]), after[left])
			}
		}
		return after
	}
	oneDigit, moreDigits := fractions(true), fractions(false)
	rest := func(left int, after []*expr, single bool) *expr {
		parts := []*expr{exponents(left, single)}
		if left >= 2 {
			parts = append(parts, seqExpr(textExpr("."), digits, after[left-2]))
		}
		return altExpr(parts...)
	}
	const unsigned = maxNumber - 1 // room for the sign is always reserved
	whole := rest(unsigned-maxDigits, moreDigits, false)
	for n := maxDigits - 1; n >= 2; n-- {
		whole = altExpr(seqExpr(digits, whole), rest(unsigned-n, moreDigits, false))
	}
	single := rest(unsigned-1, oneDigit, true)
	return seqExpr(optExpr(textExpr("-")), altExpr(
		seqExpr(textExpr("0"), single),
		seqExpr(positive, altExpr(seqExpr(digits, whole), single)),
	))
}
