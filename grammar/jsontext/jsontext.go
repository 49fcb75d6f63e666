// Package jsontext has the expressions of JSON text (RFC 8259), as Python's json.dumps writes it.
//
// Contract: the expressions of values match each value in one form of white space (", " and ": ") and any valid escape.
// Integers have at most MaxDigits digits, numbers at most MaxNumber characters. Everything here is immutable.
package jsontext

import (
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
)

// Rules are the rules of JSON. Each is compiled once per grammar, however often it is called.
type Rules struct {
	valueRule, objectRule, arrayRule, stringRule, numberRule, integerRule *expr.Rule
}

// NewRules returns rules of their own for one grammar.
func NewRules() *Rules {
	rule := func(name string) *expr.Rule { return &expr.Rule{Name: name} }
	j := &Rules{valueRule: rule("value"), objectRule: rule("object"), arrayRule: rule("array"),
		stringRule: rule("string"), numberRule: rule("number"), integerRule: rule("integer")}
	j.valueRule.Body = expr.Alt(j.Object(), j.Array(), j.Text(), j.Number(), Boolean, Null)
	member := expr.Seq(j.Text(), expr.Text(": "), j.Value())
	j.objectRule.Body = expr.Seq(expr.Text("{"), expr.Opt(listExpr(member)), expr.Text("}"))
	j.arrayRule.Body = expr.Seq(expr.Text("["), expr.Opt(listExpr(j.Value())), expr.Text("]"))
	j.stringRule.Body = Quoted(expr.Repeat(AnyChar, 0, -1))
	j.numberRule.Body = numberBody
	j.integerRule.Body = integerExpr
	return j
}

func (j *Rules) Value() *expr.Expr   { return expr.Call(j.valueRule) }
func (j *Rules) Object() *expr.Expr  { return expr.Call(j.objectRule) }
func (j *Rules) Array() *expr.Expr   { return expr.Call(j.arrayRule) }
func (j *Rules) Text() *expr.Expr    { return expr.Call(j.stringRule) }
func (j *Rules) Number() *expr.Expr  { return expr.Call(j.numberRule) }
func (j *Rules) Integer() *expr.Expr { return expr.Call(j.integerRule) }

// Endless reports whether a rule is one of j, all of which have more values than any array has items.
func (j *Rules) Endless(r *expr.Rule) bool {
	return r == j.valueRule || r == j.objectRule || r == j.arrayRule || r == j.stringRule || r == j.numberRule ||
		r == j.integerRule
}

// listExpr matches one or more of e, separated by ", ".
func listExpr(e *expr.Expr) *expr.Expr {
	return expr.Seq(e, expr.Repeat(expr.Seq(expr.Text(", "), e), 0, -1))
}

// Quoted matches e between quotes.
func Quoted(e *expr.Expr) *expr.Expr { return expr.Seq(expr.Text(`"`), e, expr.Text(`"`)) }

var (
	digits   = expr.Set(expr.ByteRange('0', '9'))
	positive = expr.Set(expr.ByteRange('1', '9'))
	hexDigit = expr.Set(expr.ByteRange('0', '9').Or(expr.ByteRange('a', 'f')).Or(expr.ByteRange('A', 'F')))
	Boolean  = expr.Words([]string{"true", "false"})
	Null     = expr.Text("null")

	// needsEscape are the characters that a JSON string must escape.
	needsEscape = expr.RuneSet{0, 0x1f, '"', '"', '\\', '\\'}
	plainChar   = expr.UTF8(needsEscape.Not())
	AnyChar     = expr.Alt(plainChar, escape)
	// escape matches any escape of one character. A high surrogate must be followed by a low one.
	escape = expr.Seq(expr.Text(`\`), expr.Alt(
		expr.Set(bytesOf(`"\/bfnrt`)),
		expr.Seq(expr.Text("u"), expr.Alt(
			expr.Seq(expr.Set(bytesOf("0123456789abcefABCEF")), hexDigit, hexDigit, hexDigit),
			expr.Seq(expr.Set(bytesOf("dD")), expr.Set(expr.ByteRange('0', '7')), hexDigit, hexDigit),
			expr.Seq(expr.Set(bytesOf("dD")), expr.Set(bytesOf("89abAB")), hexDigit, hexDigit, expr.Text(`\u`),
				expr.Set(bytesOf("dD")), expr.Set(bytesOf("cdefCDEF")), hexDigit, hexDigit),
		)),
	))
)

func bytesOf(s string) (set expr.ByteSet) {
	for i := range len(s) {
		set.Add(s[i])
	}
	return set
}

// Char matches one character of s inside a JSON string: unescaped, or with the escape that it requires.
func Char(s expr.RuneSet) *expr.Expr {
	parts := []*expr.Expr{expr.UTF8(s.And(needsEscape.Not()))}
	escaped := s.And(needsEscape)
	for i := 0; i < len(escaped); i += 2 {
		for r := escaped[i]; r <= escaped[i+1]; r++ {
			parts = append(parts, expr.Words(escapesOf(r)))
		}
	}
	return expr.Alt(parts...)
}

// Split returns the characters of s that may stand in a JSON string unescaped, and the escapes of all others.
func Split(s expr.RuneSet) (plain expr.RuneSet, escapes []string) {
	escaped := s.And(needsEscape)
	for i := 0; i < len(escaped); i += 2 {
		for r := escaped[i]; r <= escaped[i+1]; r++ {
			escapes = append(escapes, escapesOf(r)...)
		}
	}
	return s.And(needsEscape.Not()), escapes
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

// Spellings returns the texts of a character inside a JSON string: unescaped if that is allowed, and its escapes, with
// lower-case digits.
func Spellings(r rune) []string {
	var out []string
	if !needsEscape.Has(r) {
		out = append(out, string(r))
	}
	if r > 0xffff {
		r -= 0x10000
		return append(out, unicodeEscape(0xd800+r>>10)+unicodeEscape(0xdc00+r&0x3ff))
	}
	if r < 0x20 || r == '"' || r == '\\' {
		out = append(out, escapesOf(r)...)
	}
	if r == '/' {
		out = append(out, `\/`)
	}
	if last := unicodeEscape(r); !slices.Contains(out, last) {
		out = append(out, last)
	}
	return out
}

func unicodeEscape(r rune) string {
	const digits = "0123456789abcdef"
	return `\u` + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// AppendString appends s as json.dumps writes it; ascii is its ensure_ascii option, which is Python's default.
func AppendString(b []byte, s string, ascii bool) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case needsEscape.Has(r):
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
	MaxDigits = 19
	MaxNumber = 32
)

// integerExpr matches an integer of at most 19 digits.
var integerExpr = expr.Alt(expr.Seq(expr.Opt(expr.Text("-")), positive, expr.Repeat(digits, 0, MaxDigits-1)),
	expr.Text("0"))

var numberBody = numberExpr()

// numberExpr matches a number of at most 32 characters, with at most 19 digits before the point, within the range of a
// float64. The exponent has two digits; three are allowed if it is negative, or after a single digit if the number
// stays below 1e308.
func numberExpr() *expr.Expr {
	sign := expr.Set(bytesOf("+-"))
	e := expr.Set(bytesOf("eE"))
	exponent := expr.Seq(e, expr.Opt(sign), digits, expr.Opt(digits)) // 4 characters
	small := expr.Seq(e, expr.Text("-"), digits, digits, digits)      // 5
	large := expr.Seq(e, expr.Opt(expr.Text("+")), expr.Alt(expr.Seq(expr.Set(bytesOf("12")), digits, digits),
		expr.Seq(expr.Text("30"), expr.Set(expr.ByteRange('0', '7'))))) // 5
	exponents := func(left int, single bool) *expr.Expr {
		var parts []*expr.Expr
		if left >= 4 {
			parts = append(parts, exponent)
		}
		if left >= 5 {
			if parts = append(parts, small); single {
				parts = append(parts, large)
			}
		}
		return expr.Opt(expr.Alt(parts...))
	}
	// The possible continuations after a digit of the fraction, by the number of characters left. Equal continuations are
	// one expr.
	fractions := func(single bool) []*expr.Expr {
		after := make([]*expr.Expr, MaxNumber+1)
		for left := range after {
			after[left] = exponents(left, single)
			if left > 0 {
				after[left] = expr.Alt(expr.Seq(digits, after[left-1]), after[left])
			}
		}
		return after
	}
	oneDigit, moreDigits := fractions(true), fractions(false)
	rest := func(left int, after []*expr.Expr, single bool) *expr.Expr {
		parts := []*expr.Expr{exponents(left, single)}
		if left >= 2 {
			parts = append(parts, expr.Seq(expr.Text("."), digits, after[left-2]))
		}
		return expr.Alt(parts...)
	}
	const unsigned = MaxNumber - 1 // room for the sign is always reserved
	whole := rest(unsigned-MaxDigits, moreDigits, false)
	for n := MaxDigits - 1; n >= 2; n-- {
		whole = expr.Alt(expr.Seq(digits, whole), rest(unsigned-n, moreDigits, false))
	}
	single := rest(unsigned-1, oneDigit, true)
	return expr.Seq(expr.Opt(expr.Text("-")), expr.Alt(
		expr.Seq(expr.Text("0"), single),
		expr.Seq(positive, expr.Alt(expr.Seq(digits, whole), single)),
	))
}
