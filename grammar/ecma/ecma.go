// Package ecma parses regular expressions of ECMA-262 (section 22.2.1), which the patterns of JSON schemas are.
//
// Contract: a pattern is compiled to an automaton over characters, as with the flag u, with the leniency of Annex B for
// punctuation. Look-ahead is supported outside of repetitions, the group (?i) as in other dialects. Look-behind,
// backreferences and escapes that no dialect agrees on are ErrUnsupported by name.
package ecma

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// Search returns the texts in which pattern matches somewhere.
func Search(pattern string) (*dfa.DFA, error) {
	n, err := Parse(pattern)
	if err != nil {
		return nil, err
	}
	return named(pattern)(dfa.Compile(dfa.Cat(dfa.Everything(), n, dfa.Everything())))
}

// SearchShort is Search, but may leave out long texts where that has too many states: see DFA.Short.
func SearchShort(pattern string) (*dfa.DFA, error) {
	n, err := Parse(pattern)
	if err != nil {
		return nil, err
	}
	return named(pattern)(dfa.CompileShort(dfa.Cat(dfa.Everything(), n, dfa.Everything())))
}

// Whole returns the texts that pattern matches as a whole.
func Whole(pattern string) (*dfa.DFA, error) {
	n, err := Parse(pattern)
	if err != nil {
		return nil, err
	}
	return named(pattern)(dfa.Compile(n))
}

func named(pattern string) func(*dfa.DFA, error) (*dfa.DFA, error) {
	return func(d *dfa.DFA, err error) (*dfa.DFA, error) {
		if err != nil {
			return nil, expr.Errorf(err, "in the pattern %q", expr.Clip(pattern))
		}
		return d, nil
	}
}

// Parse returns the expression of a pattern.
func Parse(pattern string) (dfa.Node, error) {
	if len(pattern) > limits.GrammarRegex {
		return dfa.Node{}, expr.Errorf(expr.ErrLimit, "the pattern has %d bytes; at most %d are allowed", len(pattern),
			limits.GrammarRegex)
	}
	p := &parser{pattern: pattern, rest: pattern}
	n := p.alternatives(0)
	if p.err == nil && p.rest != "" {
		p.fail(expr.ErrInvalid, "unmatched )")
	}
	return n, p.err
}

type parser struct {
	pattern, rest string
	fold          bool // (?i)
	all           bool // (?s): a dot matches line terminators
	err           error
}

func (p *parser) fail(kind error, format string, args ...any) {
	if p.err == nil {
		p.err = expr.Errorf(kind, "the pattern %q: "+format, append([]any{expr.Clip(p.pattern)}, args...)...)
		p.rest = ""
	}
}

func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *parser) alternatives(depth int) dfa.Node {
	if depth > limits.GrammarNesting {
		p.fail(expr.ErrLimit, "nested more than %d levels deep", limits.GrammarNesting)
	}
	fold, all := p.fold, p.all
	defer func() { p.fold, p.all = fold, all }()
	alts := []dfa.Node{p.sequence(depth)}
	for p.take("|") {
		alts = append(alts, p.sequence(depth))
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return dfa.Alt(alts...)
}

func (p *parser) sequence(depth int) dfa.Node {
	var parts []dfa.Node
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		n, repeatable := p.term(depth)
		if least, most, ok := p.quantifier(); ok {
			if !repeatable {
				p.fail(expr.ErrInvalid, "nothing to repeat")
			}
			n = dfa.Repeat(n, least, most)
		}
		parts = append(parts, n)
	}
	return dfa.Cat(parts...)
}

// quantifier takes a quantifier if one follows. Greediness makes no difference to what matches.
func (p *parser) quantifier() (least, most int, ok bool) {
	switch {
	case p.take("*"):
		least, most = 0, -1
	case p.take("+"):
		least, most = 1, -1
	case p.take("?"):
		least, most = 0, 1
	default:
		if least, most, ok = p.counts(); !ok {
			return 0, 0, false
		}
	}
	p.take("?")
	return least, most, true
}

// counts takes {n}, {n,} or {n,m}; other braces are literal.
func (p *parser) counts() (least, most int, ok bool) {
	if !strings.HasPrefix(p.rest, "{") {
		return 0, 0, false
	}
	inside, after, found := strings.Cut(p.rest[1:], "}")
	from, to, ranged := strings.Cut(inside, ",")
	least, err := strconv.Atoi(from)
	if !found || err != nil || from[0] == '+' || from[0] == '-' {
		return 0, 0, false
	}
	most = least
	if ranged {
		most = -1
		if to != "" {
			if most, err = strconv.Atoi(to); err != nil {
				return 0, 0, false
			}
		}
	}
	if most >= 0 && most < least {
		p.fail(expr.ErrInvalid, "the counts {%s} are out of order", inside)
		return 0, 0, false
	}
	p.rest = after
	return least, most, true
}

// term takes one atom or assertion, and tells whether it may be repeated.
func (p *parser) term(depth int) (n dfa.Node, repeatable bool) {
	switch c := p.rune(); c {
	case '^':
		return dfa.Begin(), false
	case '$':
		return dfa.End(), false
	case '.':
		if p.all {
			return dfa.Set(expr.EveryRune), true
		}
		return dfa.Set(lineEnds.Not()), true
	case '[':
		return dfa.Set(p.class()), true
	case '(':
		return p.group(depth)
	case '*', '+', '?':
		p.fail(expr.ErrInvalid, "nothing to repeat before %c", c)
		return n, false
	case '\\':
		return p.escape()
	default:
		return dfa.Set(p.folded(expr.RuneSet{c, c})), true
	}
}

func (p *parser) group(depth int) (n dfa.Node, repeatable bool) {
	fold, all := p.fold, p.all
	look, negated, flags := false, false, false
	if p.take("?") {
		switch {
		case p.take(":"):
		case p.take("="):
			look = true
		case p.take("!"):
			look, negated = true, true
		case p.take("<="), p.take("<!"):
			p.fail(expr.ErrUnsupported, "look-behind")
		case p.take("<"), p.take("P<"):
			_, after, ok := strings.Cut(p.rest, ">")
			if p.rest = after; !ok {
				p.fail(expr.ErrInvalid, "the name of a group has no end")
			}
		default:
			flags = true
			p.flags()
		}
	}
	if flags && p.take(")") { // the flags hold to the end of the enclosing group
		return dfa.Cat(), false
	}
	n = p.alternatives(depth + 1)
	if flags {
		p.fold, p.all = fold, all
	}
	if p.err == nil && !p.take(")") {
		p.fail(expr.ErrInvalid, "a group has no end")
	}
	if look {
		return dfa.Look(n, negated), true
	}
	return n, true
}

// flags takes the flags of a group up to its colon or parenthesis.
func (p *parser) flags() {
	on := true
	for p.rest != "" && p.rest[0] != ')' {
		switch c := p.rune(); c {
		case ':':
			return
		case '-':
			on = false
		case 'i':
			p.fold = on
		case 's':
			p.all = on
		default:
			p.fail(expr.ErrUnsupported, "the group (?%c", c)
			return
		}
	}
}

// folded returns s with all cases of its letters if case is ignored.
func (p *parser) folded(s expr.RuneSet) expr.RuneSet {
	if !p.fold {
		return s
	}
	pairs := slices.Clone(s)
	for i := 0; i < len(s); i += 2 {
		for r := s[i]; r <= s[i+1] && r < 0x2000; r++ {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				pairs = append(pairs, f, f)
			}
		}
	}
	return expr.RuneSetOf(pairs)
}
