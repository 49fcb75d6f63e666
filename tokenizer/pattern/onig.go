package pattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// The reference compiles patterns with Oniguruma, Ruby syntax, UTF-8
// (https://github.com/kkos/oniguruma/blob/v6.9.10/doc/RE). translate rewrites them for the general engine, which has
// .NET syntax. It spells out character classes, because the engines differ in \w, (?i) and the Unicode version, and
// refuses everything that may have another meaning.

type onigParser struct {
	expr  string
	pos   int
	depth int
	fold  bool // (?i)
	out   []byte
	sets  map[chars.Class]chars.RuneSet // cache of RuneSetOf
}

// patternError is an error in a pattern. invalid says that the reference refuses the pattern too.
type patternError struct {
	text    string
	invalid bool
}

func (e *patternError) Error() string { return e.text }

func Translate(expr string) (string, error) {
	p := &onigParser{expr: expr, sets: map[chars.Class]chars.RuneSet{}}
	if err := p.alternation(); err != nil {
		return "", err
	}
	if p.pos < len(p.expr) {
		return "", p.bad("unmatched )")
	}
	return string(p.out), nil
}

// bad returns an error for a pattern that the reference refuses too.
func (p *onigParser) bad(format string, args ...any) error {
	return &patternError{fmt.Sprintf(format, args...) + fmt.Sprintf(" at offset %d", p.pos), true}
}

func (p *onigParser) unsupported(format string, args ...any) error {
	return &patternError{fmt.Sprintf(format, args...) + fmt.Sprintf(" at offset %d", p.pos), false}
}

func (p *onigParser) more() bool { return p.pos < len(p.expr) }

// take consumes s if it is next.
func (p *onigParser) take(s string) bool {
	if strings.HasPrefix(p.expr[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *onigParser) rune() rune {
	c, n := utf8.DecodeRuneInString(p.expr[p.pos:])
	p.pos += n
	return c
}

func (p *onigParser) alternation() error {
	if p.depth++; p.depth > limits.TokenizerPatternNesting {
		return p.unsupported("nested more than %d levels deep", limits.TokenizerPatternNesting)
	}
	fold := p.fold
	for {
		for p.more() && p.expr[p.pos] != '|' && p.expr[p.pos] != ')' {
			if err := p.term(); err != nil {
				return err
			}
		}
		if !p.take("|") {
			p.depth--
			p.fold = fold
			return nil
		}
		p.out = append(p.out, '|')
	}
}

// term translates one atom and its quantifiers.
func (p *onigParser) term() error {
	start := len(p.out)
	quantifiable, err := p.atom()
	if err != nil {
		return err
	}
	if len(p.out) > limits.TokenizerPattern {
		return p.unsupported("character classes that take more than %d bytes", limits.TokenizerPattern)
	}
	for n := 0; ; n++ {
		q, possessive, ok, err := p.quantifier()
		if err != nil || !ok {
			return err
		}
		if !quantifiable {
			return p.unsupported("a quantifier after an anchor or a look-around")
		}
		if n > 0 { // a second quantifier, as in x{1,3}+
			p.enclose(start, "(?:")
		}
		p.out = append(p.out, q...)
		if possessive {
			p.enclose(start, "(?>")
		}
	}
}

// enclose wraps the output since start in a group.
func (p *onigParser) enclose(start int, open string) {
	p.out = slices.Insert(p.out, start, []byte(open)...)
	p.out = append(p.out, ')')
}

func (p *onigParser) text(s string) { p.out = append(p.out, s...) }

// quantifier parses a quantifier in Ruby syntax: a + after an interval, and a ? after {n}, are further quantifiers.
func (p *onigParser) quantifier() (q string, possessive, ok bool, err error) {
	if !p.more() {
		return "", false, false, nil
	}
	switch c := p.expr[p.pos]; c {
	case '?', '*', '+':
		p.pos++
		q = string(c)
		if p.take("+") {
			return q, true, true, nil
		}
		if p.take("?") {
			q += "?"
		}
		return q, false, true, nil
	case '{':
		end := strings.IndexByte(p.expr[p.pos:], '}')
		if end < 0 {
			return "", false, false, p.unsupported("a { that starts no interval")
		}
		lo, hi, isRange := strings.Cut(p.expr[p.pos+1:p.pos+end], ",")
		if lo == "" && hi == "" {
			return "", false, false, p.unsupported("a { that starts no interval")
		}
		if lo == "" {
			lo = "0"
		}
		for _, s := range []string{lo, hi} {
			if s == "" {
				continue
			}
			if n, err := strconv.ParseUint(s, 10, 32); err != nil {
				return "", false, false, p.unsupported("a { that starts no interval")
			} else if n > 100000 {
				return "", false, false, p.bad("interval over 100000")
			}
		}
		if isRange && hi != "" {
			l, _ := strconv.Atoi(lo)
			h, _ := strconv.Atoi(hi)
			if l > h {
				return "", false, false, p.unsupported("an interval whose minimum exceeds its maximum")
			}
		}
		p.pos += end + 1
		switch {
		case !isRange:
			return "{" + lo + "}", false, true, nil
		case p.take("?"):
			return "{" + lo + "," + hi + "}?", false, true, nil
		}
		return "{" + lo + "," + hi + "}", false, true, nil
	}
	return "", false, false, nil
}

// groups have the same meaning in both engines.
var groups = []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}

// atom translates one atom. quantifiable is false if it matches no characters.
func (p *onigParser) atom() (quantifiable bool, err error) {
	switch p.expr[p.pos] {
	case '(':
		return p.group()
	case '[':
		p.pos++
		set, err := p.class()
		if err != nil {
			return false, err
		}
		p.out = set.AppendClass(p.out)
		return true, nil
	case '.':
		p.pos++
		p.out = chars.NewRuneSet(chars.RuneRange{Lo: '\n', Hi: '\n'}).Complement().AppendClass(p.out)
		return true, nil
	case '^': // at a line start, but not after a line feed at the end of the text
		p.pos++
		p.text(`(?:\A|(?<=\n)(?!\z))`)
		return false, nil
	case '$':
		p.pos++
		p.text(`(?=\n|\z)`)
		return false, nil
	case '*', '+', '?':
		return false, p.bad("nothing to repeat")
	case '\\':
		if p.take(`\A`) {
			p.text(`\A`)
			return false, nil
		}
		if p.take(`\z`) {
			p.text(`\z`)
			return false, nil
		}
		if p.take(`\b`) {
			p.boundary("(?:(?<=", ")(?!", ")|(?<!", ")(?=", "))")
			return false, nil
		}
		if p.take(`\B`) {
			p.boundary("(?:(?<=", ")(?=", ")|(?<!", ")(?!", "))")
			return false, nil
		}
		set, err := p.escape(false)
		if err != nil {
			return false, err
		}
		p.write(set)
		return true, nil
	}
	c := p.rune()
	p.write(chars.NewRuneSet(chars.RuneRange{Lo: c, Hi: c}))
	return true, p.checkFold(c)
}

// boundary writes \w between parts.
func (p *onigParser) boundary(parts ...string) {
	word := p.onigWord(false)
	for i, part := range parts {
		if i > 0 {
			p.out = word.AppendClass(p.out)
		}
		p.text(part)
	}
}

// write writes a set, with the other case under (?i).
func (p *onigParser) write(set chars.RuneSet) {
	if p.fold {
		set = set.FoldASCII()
	}
	if len(set) == 1 && set[0].Lo == set[0].Hi {
		p.out = chars.AppendRune(p.out, set[0].Lo)
		return
	}
	p.out = set.AppendClass(p.out)
}

// checkFold refuses characters whose case folding would need tables: non-ASCII letters, and letter pairs that ligatures
// fold to (ss, st, ff, fi, fl).
func (p *onigParser) checkFold(c rune) error {
	if !p.fold {
		return nil
	}
	if c >= utf8.RuneSelf {
		return p.unsupported("(?i) with %q", c)
	}
	if next := p.pos; next < len(p.expr) {
		switch strings.ToLower(string(c) + p.expr[next:next+1]) {
		case "ss", "st", "ff", "fi", "fl":
			return p.unsupported("(?i) with letters that have a ligature")
		}
	}
	return nil
}

func (p *onigParser) group() (quantifiable bool, err error) {
	fold := p.fold
	for _, g := range groups {
		if !p.take(g) {
			continue
		}
		p.text(g)
		return g == "(?:" || g == "(?>", p.closeGroup(fold)
	}
	switch {
	case p.take("(?i:"):
		p.fold = true
	case p.take("(?-i:"):
		p.fold = false
	case p.take("(?i)"): // to the end of the enclosing group, including its alternatives
		p.fold = true
		p.text("(?:")
		if err := p.alternation(); err != nil {
			return false, err
		}
		p.text(")")
		p.fold = fold
		return false, nil
	case strings.HasPrefix(p.expr[p.pos:], "(?"):
		return false, p.unsupported("group %q", p.expr[p.pos:min(p.pos+4, len(p.expr))])
	default:
		p.pos++
	}
	p.text("(?:")
	return true, p.closeGroup(fold)
}

func (p *onigParser) closeGroup(fold bool) error {
	if err := p.alternation(); err != nil {
		return err
	}
	if !p.take(")") {
		return p.bad("end pattern with unmatched parenthesis")
	}
	p.fold = fold
	p.text(")")
	return nil
}
