package ecma

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
)

// The classes of ECMA-262: LineTerminator (12.3), WhiteSpace (12.2), \d and \w (22.2.2.9).
var (
	lineEnds = expr.RuneSet{'\n', '\n', '\r', '\r', 0x2028, 0x2029}
	digits   = expr.RuneSet{'0', '9'}
	words    = expr.RuneSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	spaces   = expr.RuneSet{'\t', '\r', ' ', ' ', 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029,
		0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff}
)

// escape takes what follows a backslash outside of a class.
func (p *parser) escape() (n dfa.Node, repeatable bool) {
	switch {
	case p.take("b"):
		return dfa.WordBoundary(false), false
	case p.take("B"):
		return dfa.WordBoundary(true), false
	case p.rest != "" && p.rest[0] >= '1' && p.rest[0] <= '9', strings.HasPrefix(p.rest, "k<"):
		p.fail(expr.ErrUnsupported, "a backreference")
		return n, false
	}
	set, single := p.character()
	if single {
		set = p.folded(set)
	}
	return dfa.Set(set), true
}

// character takes what follows a backslash: a class, or a single character.
func (p *parser) character() (set expr.RuneSet, single bool) {
	if p.rest == "" {
		p.fail(expr.ErrInvalid, "ends with a backslash")
		return nil, false
	}
	one := func(r rune) (expr.RuneSet, bool) { return expr.RuneSet{r, r}.And(expr.EveryRune), true }
	switch c := p.rune(); c {
	case 'd':
		return digits, false
	case 'D':
		return digits.Not(), false
	case 'w':
		return words, false
	case 'W':
		return words.Not(), false
	case 's':
		return spaces, false
	case 'S':
		return spaces.Not(), false
	case 'p', 'P':
		return p.property(c == 'P'), false
	case 't':
		return one('\t')
	case 'n':
		return one('\n')
	case 'r':
		return one('\r')
	case 'f':
		return one('\f')
	case 'v':
		return one('\v')
	case '0':
		return one(0)
	case 'c':
		if p.rest != "" {
			return one(p.rune() & 31)
		}
	case 'x':
		if r, ok := p.hex(2); ok {
			return one(r)
		}
		p.fail(expr.ErrUnsupported, `the escape \x`)
	case 'u':
		return one(p.unicode())
	default:
		if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			p.fail(expr.ErrUnsupported, `the escape \%c`, c)
			return nil, false
		}
		return one(c)
	}
	return nil, false
}

func (p *parser) hex(n int) (rune, bool) {
	if len(p.rest) < n {
		return 0, false
	}
	v, err := strconv.ParseUint(p.rest[:n], 16, 32)
	if err != nil {
		return 0, false
	}
	p.rest = p.rest[n:]
	return rune(v), true
}

// unicode takes the rest of \uHHHH, of two of them that are a surrogate pair, or of \u{H...}.
func (p *parser) unicode() rune {
	if p.take("{") {
		inside, after, ok := strings.Cut(p.rest, "}")
		v, err := strconv.ParseUint(inside, 16, 32)
		if !ok || err != nil || v > unicode.MaxRune {
			p.fail(expr.ErrInvalid, `the escape \u{%s}`, inside)
		}
		p.rest = after
		return rune(v)
	}
	r, ok := p.hex(4)
	if !ok {
		p.fail(expr.ErrUnsupported, `the escape \u without four digits`)
		return 0
	}
	if r >= 0xd800 && r < 0xdc00 && strings.HasPrefix(p.rest, `\u`) {
		rest := p.rest
		p.rest = p.rest[2:]
		if low, ok := p.hex(4); ok && low >= 0xdc00 && low < 0xe000 {
			return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
		}
		p.rest = rest
	}
	return r
}

// categories are the long names of Unicode's general categories that patterns use.
var categories = map[string]string{"letter": "L", "lowercase_letter": "Ll", "uppercase_letter": "Lu",
	"titlecase_letter": "Lt", "modifier_letter": "Lm", "other_letter": "Lo", "mark": "M", "number": "N", "digit": "Nd",
	"decimal_number": "Nd", "letter_number": "Nl", "other_number": "No", "punctuation": "P", "punct": "P", "symbol": "S",
	"math_symbol": "Sm", "currency_symbol": "Sc", "separator": "Z", "space_separator": "Zs", "other": "C",
	"control": "Cc", "cntrl": "Cc", "format": "Cf", "unassigned": "Cn"}

// property takes {Name} or {Name=Value}: a general category, a script or a binary property.
func (p *parser) property(negated bool) expr.RuneSet {
	inside, after, ok := strings.Cut(p.rest, "}")
	name, braced := strings.CutPrefix(inside, "{")
	if !ok || !braced {
		p.fail(expr.ErrUnsupported, `the escape \p without braces`)
		return nil
	}
	p.rest = after
	_, value, valued := strings.Cut(name, "=")
	if valued {
		name = value
	}
	var set expr.RuneSet
	switch long := categories[strings.ToLower(name)]; {
	case name == "Any":
		set = expr.EveryRune
	case name == "ASCII":
		set = expr.RuneSet{0, 0x7f}
	case name == "Alphabetic":
		set = tableSet(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	case long != "" && unicode.Categories[long] != nil:
		set = tableSet(unicode.Categories[long])
	case unicode.Categories[name] != nil:
		set = tableSet(unicode.Categories[name])
	case unicode.Scripts[name] != nil:
		set = tableSet(unicode.Scripts[name])
	case emoji[name] != nil:
		set = emoji[name]
	case unicode.Properties[name] != nil:
		set = tableSet(unicode.Properties[name])
	default:
		p.fail(expr.ErrUnsupported, `the property \p{%s}`, inside[1:])
		return nil
	}
	if negated {
		return set.Not()
	}
	return set
}

func tableSet(tables ...*unicode.RangeTable) expr.RuneSet {
	var pairs []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			pairs = append(pairs, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			pairs = append(pairs, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return expr.RuneSetOf(pairs)
}

// class takes a character class after its opening bracket.
func (p *parser) class() expr.RuneSet {
	negated := p.take("^")
	var pairs []rune
	for !p.take("]") {
		if p.rest == "" {
			p.fail(expr.ErrInvalid, "a class has no end")
			return nil
		}
		from, single := p.classAtom()
		if single && len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
			rest := p.rest
			p.rest = p.rest[1:]
			to, also := p.classAtom()
			switch {
			case p.err != nil || len(from) == 0 || also && len(to) == 0:
			case !also: // [a-\d]: the dash is literal (Annex B)
				p.rest = rest
			case to[0] < from[0]:
				p.fail(expr.ErrInvalid, "the range %c-%c is out of order", from[0], to[0])
			default:
				from = expr.RuneSet{from[0], to[0]}.And(expr.EveryRune)
			}
		}
		pairs = append(pairs, from...)
	}
	set := p.folded(expr.RuneSetOf(pairs))
	if negated {
		return set.Not()
	}
	return set
}

func (p *parser) classAtom() (set expr.RuneSet, single bool) {
	if p.take(`\b`) {
		return expr.RuneSet{'\b', '\b'}, true
	}
	if p.take(`\`) {
		if p.rest != "" && p.rest[0] >= '1' && p.rest[0] <= '9' {
			p.fail(expr.ErrUnsupported, "an octal escape")
			return nil, false
		}
		return p.character()
	}
	r := p.rune()
	return expr.RuneSet{r, r}, true
}
