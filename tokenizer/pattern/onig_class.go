package pattern

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// escape parses an escape and returns the set that it matches, usually a single character.
func (p *onigParser) escape(inClass bool) (chars.RuneSet, error) {
	p.pos++
	if !p.more() {
		return nil, p.bad("end pattern at escape")
	}
	c := p.rune()
	switch c {
	case 's', 'S':
		return negated(p.runesOf(chars.ClassSpace), c == 'S'), nil
	case 'd', 'D':
		return negated(p.runesOf(1<<chars.CatNd), c == 'D'), nil
	case 'h', 'H':
		return negated(chars.NewRuneSet(chars.RuneRange{Lo: '0', Hi: '9'}, chars.RuneRange{Lo: 'a', Hi: 'f'},
			chars.RuneRange{Lo: 'A', Hi: 'F'}), c == 'H'), nil
	case 'w', 'W':
		return negated(p.onigWord(inClass), c == 'W'), nil
	case 'p', 'P':
		return p.property(c == 'P')
	case 'x', 'u':
		return p.hex(c)
	}
	if i := strings.IndexRune("tnrfvae", c); i >= 0 {
		c = rune("\t\n\r\f\v\a\x1b"[i])
	} else if chars.AsciiLetter(byte(c)) && c < utf8.RuneSelf || c >= '0' && c <= '9' {
		return nil, p.unsupported("escape \\%c", c)
	}
	return chars.NewRuneSet(chars.RuneRange{Lo: c, Hi: c}), p.checkFold(c)
}

func negated(s chars.RuneSet, not bool) chars.RuneSet {
	if not {
		return s.Complement()
	}
	return s
}

// onigWord is Oniguruma's \w: Rust's without the joiners and, outside of a class, with six Latin-1 characters.
func (p *onigParser) onigWord(inClass bool) chars.RuneSet {
	s := slices.Clone(p.runesOf(chars.ClassLetter | chars.ClassMark | 1<<chars.CatNd | 1<<chars.CatNl | 1<<chars.CatPc))
	if !inClass {
		s = append(s, chars.RuneRange{Lo: 0xb2, Hi: 0xb3}, chars.RuneRange{Lo: 0xb9, Hi: 0xb9}, chars.RuneRange{Lo: 0xbc,
			Hi: 0xbe})
	}
	return chars.NewRuneSet(append(s, chars.RuneRange{Lo: 0x24b6, Hi: 0x24e9}, chars.RuneRange{Lo: 0x1f130, Hi: 0x1f149},
		chars.RuneRange{Lo: 0x1f150, Hi: 0x1f169},
		chars.RuneRange{Lo: 0x1f170, Hi: 0x1f189})...)
}

// runesOf returns the members of a class, from the cache.
func (p *onigParser) runesOf(set chars.Class) chars.RuneSet {
	if _, ok := p.sets[set]; !ok {
		p.sets[set] = chars.RuneSetOf(set)
	}
	return p.sets[set]
}

func (p *onigParser) property(not bool) (chars.RuneSet, error) {
	end := strings.IndexByte(p.expr[p.pos:], '}')
	if !p.take("{") || end < 0 {
		return nil, p.unsupported("\\p without braces")
	}
	name := p.expr[p.pos : p.pos+end-1]
	p.pos += end
	if p.fold {
		return nil, p.unsupported("(?i) with \\p{%s}", name)
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, not = rest, !not
	}
	if set, ok := chars.ClassNames[name]; ok {
		return negated(p.runesOf(set), not), nil
	}
	if name == "Han" {
		return negated(chars.NewRuneSet(slices.Clone(hanRanges)...), not), nil
	}
	return nil, p.unsupported("property \\p{%s}", name)
}

func (p *onigParser) hex(kind rune) (chars.RuneSet, error) {
	digits := ""
	switch {
	case kind == 'x' && p.take("{"):
		end := strings.IndexByte(p.expr[p.pos:], '}')
		if end < 0 {
			return nil, p.bad("invalid code point")
		}
		digits = p.expr[p.pos : p.pos+end]
		p.pos += end + 1
	default:
		limit := 4
		if kind == 'x' {
			limit = 2
		}
		for len(digits) < limit && p.more() && strings.IndexByte("0123456789abcdefABCDEF", p.expr[p.pos]) >= 0 {
			digits += p.expr[p.pos : p.pos+1]
			p.pos++
		}
		if kind == 'u' && len(digits) < 4 {
			return nil, p.bad("too short escape sequence")
		}
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) || kind == 'x' && v >= 0x80 && len(digits) <= 2 {
		return nil, p.unsupported("escape \\%c%s", kind, digits)
	}
	return chars.NewRuneSet(chars.RuneRange{Lo: rune(v), Hi: rune(v)}), p.checkFold(rune(v))
}

// posixClasses are the POSIX bracket classes that consist of whole categories.
var posixClasses = map[string]chars.Class{
	"digit": 1 << chars.CatNd, "space": chars.ClassSpace, "punct": chars.ClassPunct | chars.ClassSymbol,
}

// class parses a character class after its [.
func (p *onigParser) class() (chars.RuneSet, error) {
	if p.depth++; p.depth > limits.TokenizerPatternNesting {
		return nil, p.unsupported("nested more than %d levels deep", limits.TokenizerPatternNesting)
	}
	not := p.take("^")
	var all chars.RuneSet // intersection of the operands of && so far
	intersecting := false
	var ranges []chars.RuneRange
	for first := true; ; first = false {
		if !p.more() {
			return nil, p.bad("premature end of char-class")
		}
		switch {
		case p.expr[p.pos] == ']' && first:
			return nil, p.bad("empty char-class")
		case p.take("]"):
			set := chars.NewRuneSet(ranges...)
			if intersecting {
				set = all.Intersect(set)
			}
			if p.fold {
				set = set.FoldASCII()
			}
			p.depth--
			return negated(set, not), nil
		case p.take("&&"):
			if set := chars.NewRuneSet(ranges...); intersecting {
				all = all.Intersect(set)
			} else {
				all, intersecting = set, true
			}
			ranges = nil
			continue
		case strings.HasPrefix(p.expr[p.pos:], "[:"):
			set, err := p.posix()
			if err != nil {
				return nil, err
			}
			ranges = append(ranges, set...)
			continue
		case p.take("["):
			set, err := p.class()
			if err != nil {
				return nil, err
			}
			ranges = append(ranges, set...)
			continue
		}
		lo, single, err := p.member()
		if err != nil {
			return nil, err
		}
		if !single || !strings.HasPrefix(p.expr[p.pos:], "-") || strings.HasPrefix(p.expr[p.pos:], "-]") {
			ranges = append(ranges, lo...)
			continue
		}
		p.pos++
		if !p.more() {
			return nil, p.bad("premature end of char-class")
		}
		if c := p.expr[p.pos]; c == '[' || c == '&' {
			return nil, p.unsupported("a range that ends in %q", c)
		}
		hi, single, err := p.member()
		if err != nil {
			return nil, err
		}
		if !single {
			return nil, p.unsupported("a range that ends in a class")
		}
		if hi[0].Lo < lo[0].Lo {
			return nil, p.bad("empty range in char class")
		}
		r := chars.RuneRange{Lo: lo[0].Lo, Hi: hi[0].Hi}
		if p.fold && r.Hi >= utf8.RuneSelf {
			return nil, p.unsupported("(?i) with a range over ASCII")
		}
		ranges = append(ranges, r)
	}
}

// member parses one character or escape in a class. single reports whether it is one character.
func (p *onigParser) member() (set chars.RuneSet, single bool, err error) {
	if p.expr[p.pos] == '\\' {
		before := p.pos
		set, err = p.escape(true)
		kind := p.expr[before+1 : min(before+2, len(p.expr))]
		return set, err == nil && !strings.Contains("sSdDhHwWpP", kind), err
	}
	c := p.rune()
	if p.fold && c >= utf8.RuneSelf {
		return nil, false, p.unsupported("(?i) with %q", c)
	}
	return chars.NewRuneSet(chars.RuneRange{Lo: c, Hi: c}), true, nil
}

func (p *onigParser) posix() (chars.RuneSet, error) {
	end := strings.Index(p.expr[p.pos:], ":]")
	if end < 0 {
		return nil, p.unsupported("[: in a class")
	}
	name, not := strings.CutPrefix(p.expr[p.pos+2:p.pos+end], "^")
	set, ok := posixClasses[name]
	if !ok {
		return nil, p.unsupported("class [:%s:]", name)
	}
	p.pos += end + 2
	return negated(p.runesOf(set), not), nil
}

// hanRanges is the script Han of Unicode 16.
var hanRanges = []chars.RuneRange{
	{Lo: 0x2e80, Hi: 0x2e99}, {Lo: 0x2e9b, Hi: 0x2ef3}, {Lo: 0x2f00, Hi: 0x2fd5}, {Lo: 0x3005, Hi: 0x3005}, {Lo: 0x3007,
		Hi: 0x3007}, {Lo: 0x3021, Hi: 0x3029},
	{Lo: 0x3038, Hi: 0x303b}, {Lo: 0x3400, Hi: 0x4dbf}, {Lo: 0x4e00, Hi: 0x9fff}, {Lo: 0xf900, Hi: 0xfa6d}, {Lo: 0xfa70,
		Hi: 0xfad9}, {Lo: 0x16fe2, Hi: 0x16fe3},
	{Lo: 0x16ff0, Hi: 0x16ff1}, {Lo: 0x20000, Hi: 0x2a6df}, {Lo: 0x2a700, Hi: 0x2b739}, {Lo: 0x2b740, Hi: 0x2b81d},
	{Lo: 0x2b820, Hi: 0x2cea1},
	{Lo: 0x2ceb0, Hi: 0x2ebe0}, {Lo: 0x2ebf0, Hi: 0x2ee5d}, {Lo: 0x2f800, Hi: 0x2fa1d}, {Lo: 0x30000, Hi: 0x3134a},
	{Lo: 0x31350, Hi: 0x323af},
}
