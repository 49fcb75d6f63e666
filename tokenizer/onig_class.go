package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
)

// escape parses an escape and returns the set that it matches, usually a single character.
func (p *onigParser) escape(inClass bool) (runeSet, error) {
	p.pos++
	if !p.more() {
		return nil, p.bad("end pattern at escape")
	}
	c := p.rune()
	switch c {
	case 's', 'S':
		return negated(p.runesOf(classSpace), c == 'S'), nil
	case 'd', 'D':
		return negated(p.runesOf(1<<catNd), c == 'D'), nil
	case 'h', 'H':
		return negated(newRuneSet(runeRange{'0', '9'}, runeRange{'a', 'f'}, runeRange{'A', 'F'}), c == 'H'), nil
	case 'w', 'W':
		return negated(p.onigWord(inClass), c == 'W'), nil
	case 'p', 'P':
		return p.property(c == 'P')
	case 'x', 'u':
		return p.hex(c)
	}
	if i := strings.IndexRune("tnrfvae", c); i >= 0 {
		c = rune("\t\n\r\f\v\a\x1b"[i])
	} else if asciiLetter(byte(c)) && c < utf8.RuneSelf || c >= '0' && c <= '9' {
		return nil, p.unsupported("escape \\%c", c)
	}
	return newRuneSet(runeRange{c, c}), p.checkFold(c)
}

func negated(s runeSet, not bool) runeSet {
	if not {
		return s.complement()
	}
	return s
}

// onigWord is Oniguruma's \w: Rust's without the joiners and, outside of a class, with six Latin-1 characters.
func (p *onigParser) onigWord(inClass bool) runeSet {
	s := slices.Clone(p.runesOf(classLetter | classMark | 1<<catNd | 1<<catNl | 1<<catPc))
	if !inClass {
		s = append(s, runeRange{0xb2, 0xb3}, runeRange{0xb9, 0xb9}, runeRange{0xbc, 0xbe})
	}
	return newRuneSet(append(s, runeRange{0x24b6, 0x24e9}, runeRange{0x1f130, 0x1f149}, runeRange{0x1f150, 0x1f169},
		runeRange{0x1f170, 0x1f189})...)
}

// runesOf returns the members of a class, from the cache.
func (p *onigParser) runesOf(set class) runeSet {
	if _, ok := p.sets[set]; !ok {
		p.sets[set] = runesOf(set)
	}
	return p.sets[set]
}

func (p *onigParser) property(not bool) (runeSet, error) {
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
	if set, ok := classNames[name]; ok {
		return negated(p.runesOf(set), not), nil
	}
	if name == "Han" {
		return negated(newRuneSet(slices.Clone(hanRanges)...), not), nil
	}
	return nil, p.unsupported("property \\p{%s}", name)
}

func (p *onigParser) hex(kind rune) (runeSet, error) {
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
	return newRuneSet(runeRange{rune(v), rune(v)}), p.checkFold(rune(v))
}

// posixClasses are the POSIX bracket classes that consist of whole categories.
var posixClasses = map[string]class{
	"digit": 1 << catNd, "space": classSpace, "punct": classPunct | classSymbol,
}

// class parses a character class after its [.
func (p *onigParser) class() (runeSet, error) {
	if p.depth++; p.depth > limits.TokenizerPatternNesting {
		return nil, p.unsupported("nested more than %d levels deep", limits.TokenizerPatternNesting)
	}
	not := p.take("^")
	var all runeSet // intersection of the operands of && so far
	intersecting := false
	var ranges []runeRange
	for first := true; ; first = false {
		if !p.more() {
			return nil, p.bad("premature end of char-class")
		}
		switch {
		case p.expr[p.pos] == ']' && first:
			return nil, p.bad("empty char-class")
		case p.take("]"):
			set := newRuneSet(ranges...)
			if intersecting {
				set = all.intersect(set)
			}
			if p.fold {
				set = set.foldASCII()
			}
			p.depth--
			return negated(set, not), nil
		case p.take("&&"):
			if set := newRuneSet(ranges...); intersecting {
				all = all.intersect(set)
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
		if hi[0].lo < lo[0].lo {
			return nil, p.bad("empty range in char class")
		}
		r := runeRange{lo[0].lo, hi[0].hi}
		if p.fold && r.hi >= utf8.RuneSelf {
			return nil, p.unsupported("(?i) with a range over ASCII")
		}
		ranges = append(ranges, r)
	}
}

// member parses one character or escape in a class. single reports whether it is one character.
func (p *onigParser) member() (set runeSet, single bool, err error) {
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
	return newRuneSet(runeRange{c, c}), true, nil
}

func (p *onigParser) posix() (runeSet, error) {
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
var hanRanges = []runeRange{
	{0x2e80, 0x2e99}, {0x2e9b, 0x2ef3}, {0x2f00, 0x2fd5}, {0x3005, 0x3005}, {0x3007, 0x3007}, {0x3021, 0x3029},
	{0x3038, 0x303b}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfa6d}, {0xfa70, 0xfad9}, {0x16fe2, 0x16fe3},
	{0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739}, {0x2b740, 0x2b81d}, {0x2b820, 0x2cea1},
	{0x2ceb0, 0x2ebe0}, {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d}, {0x30000, 0x3134a}, {0x31350, 0x323af},
}
