package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/ecma"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/format"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/number"
	"github.com/ingotml/ingot/grammar/regex"
	"github.com/ingotml/ingot/grammar/value"
)

// search returns the automaton of the texts in which a pattern matches.
func (c *compiler) search(pattern, path string) *dfa.DFA {
	if d := c.patterns[pattern]; d != nil {
		return d
	}
	if !c.step(20, path) {
		return nil
	}
	d, err := ecma.Search(pattern)
	if err != nil && c.bestEffort && !errors.Is(err, expr.ErrInvalid) {
		c.unsupported(path, err.Error())
		d, err = dfa.Any(), nil
	}
	if err != nil {
		c.failAt(path, err)
		return nil
	}
	c.patterns[pattern] = d
	return d
}

// searchShort is search, but may leave out long texts.
func (c *compiler) searchShort(pattern, path string) *dfa.DFA {
	short := "short " + pattern
	if d := c.patterns[short]; d != nil {
		return d
	}
	if c.patterns[pattern] == nil && c.step(20, path) {
		if d, err := ecma.SearchShort(pattern); err == nil && d.Short() {
			c.patterns[short] = d
			return d
		} else if err == nil {
			c.patterns[pattern] = d
		}
	}
	return c.search(pattern, path)
}

// barredTexts returns the strings that s excludes.
func (s *shape) barredTexts() (texts []string) {
	for _, v := range s.barred {
		if v.Kind == value.String {
			texts = append(texts, v.Text)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// texts returns the automaton of the strings of s, which is made once.
func (c *compiler) texts(s *shape, path string) *dfa.DFA {
	r := &s.strings
	key := fmt.Sprintf("texts %d %+v %q", r.minLength, r.patterns, s.barredTexts())
	if r.maxLength != nil {
		key += fmt.Sprint(*r.maxLength)
	}
	if d := c.patterns[key]; d != nil {
		return d
	}
	d := c.makeTexts(s, path)
	if c.err == nil {
		c.patterns[key] = d
	}
	return d
}

func (c *compiler) makeTexts(s *shape, path string) *dfa.DFA {
	var d *dfa.DFA
	r := &s.strings
	for _, p := range r.patterns {
		one := c.textPattern(p, path)
		var err error
		switch {
		case c.err != nil:
			return nil
		case p.negated && d == nil:
			d, err = dfa.Not(one)
		case p.negated:
			d, err = dfa.Minus(d, one)
		case d == nil:
			d = one
		default:
			d, err = dfa.IntersectShort(d, one)
		}
		if c.failAt(path, err); c.err != nil {
			return nil
		}
	}
	if d == nil {
		d = dfa.Any()
	}
	if barred := s.barredTexts(); len(barred) > 0 {
		words, err := dfa.Words(barred)
		if err == nil {
			d, err = dfa.Minus(d, words)
		}
		if c.failAt(path, err); c.err != nil {
			return nil
		}
	}
	if r.minLength == 0 && r.maxLength == nil || d.Empty() {
		return d
	}
	most := -1
	if r.maxLength != nil {
		most = *r.maxLength
	}
	least, longest := d.Lengths()
	if least >= r.minLength && (most < 0 || longest >= 0 && longest <= most) {
		return d
	}
	// Counting multiplies the states. A smaller maximum allows less, and few texts are that long.
	shorter := false
	if fits := maxCounted / d.States(); most > fits && r.minLength < fits {
		most, shorter = fits, true
	}
	limited, err := dfa.Length(d, r.minLength, most)
	if err == nil && shorter {
		limited, err = dfa.Shorten(limited, most)
	}
	c.failAt(path, err)
	return limited
}

// maxCounted bounds the states of a pattern with lengths.
const maxCounted = 2000

func (c *compiler) textPattern(p textPattern, path string) *dfa.DFA {
	if !p.format && p.negated {
		return c.search(p.source, path)
	}
	if !p.format {
		return c.searchShort(p.source, path)
	}
	d, err := format.Texts(p.source)
	c.failAt(path, err)
	return d
}

// text matches the strings of s.
func (c *compiler) text(s *shape, path string) *expr.Expr {
	r := &s.strings
	barred := s.barredTexts()
	most := -1
	if r.maxLength != nil {
		most = *r.maxLength
	}
	switch {
	case most >= 0 && most < r.minLength:
		return expr.None
	case len(r.patterns)+len(barred) == 0 && r.minLength == 0 && most < 0:
		return c.json.Text()
	case len(r.patterns)+len(barred) == 0:
		return jsontext.Quoted(expr.Repeat(jsontext.AnyChar, r.minLength, most))
	}
	key := fmt.Sprintf("text %d %d %+v %q", r.minLength, most, r.patterns, barred)
	return c.shared(key, path, 20, func() *expr.Expr {
		if p := r.patterns; len(p) == 1 && p[0].format && !p[0].negated && len(barred) == 0 && r.minLength == 0 && most < 0 {
			e, err := format.Expr(p[0].source)
			c.failAt(path, err)
			return e
		}
		if e := c.run(s, most, path); e != nil {
			return jsontext.Quoted(e)
		}
		d := c.texts(s, path)
		if errors.Is(c.err, expr.ErrLimit) {
			return c.largeText(s, path)
		}
		if c.err != nil {
			return expr.None
		}
		return jsontext.Quoted(d.Expr())
	})
}

// run matches the strings of a pattern that repeats one class, with any lengths; nil if it is another one.
func (c *compiler) run(s *shape, most int, path string) *expr.Expr {
	p := s.strings.patterns
	if len(p) != 1 || p[0].negated || len(s.barredTexts()) > 0 {
		return nil
	}
	d := c.textPattern(p[0], path)
	if c.err != nil {
		c.err = clearLimit(c.err)
		return nil
	}
	r, ok := d.Run()
	if !ok {
		return nil
	}
	least := max(r.Least, s.strings.minLength)
	if most < 0 || r.Most >= 0 && r.Most < most {
		most = r.Most
	}
	if most >= 0 && most < least {
		return expr.None
	}
	return expr.Repeat(jsontext.Char(r.Set), least, most)
}

// clearLimit returns nil for an ErrLimit, which another way may avoid.
func clearLimit(err error) error {
	if errors.Is(err, expr.ErrLimit) {
		return nil
	}
	return err
}

// largeText matches the strings of a single pattern whose automaton is too large, as an expression with counted
// repetitions.
func (c *compiler) largeText(s *shape, path string) *expr.Expr {
	r := &s.strings
	if len(r.patterns) != 1 || r.patterns[0].negated || r.minLength > 0 || r.maxLength != nil ||
		len(s.barredTexts()) > 0 || strings.ContainsAny(r.patterns[0].source, `\`) && !plainEscapes(r.patterns[0].source) {
		return expr.None // keeps the error
	}
	e, err := regex.Compile(regex.FromECMA(r.patterns[0].source), jsontext.Char, true)
	if err != nil {
		return expr.None
	}
	c.err = nil
	return jsontext.Quoted(e)
}

// plainEscapes reports whether a pattern has no escape that RE2 reads differently.
func plainEscapes(pattern string) bool {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			if i++; strings.IndexByte(`sSbB`, pattern[i]) >= 0 {
				return false
			}
		}
	}
	return true
}

// number matches the numbers of s. With constraints, numbers have no exponent.
func (c *compiler) number(s *shape, path string) *expr.Expr {
	n := c.numberRule(s, path)
	if n.Free() {
		if n.Fractions {
			return c.json.Number()
		}
		return c.json.Integer()
	}
	return c.shared(n.Key(), path, 20, func() *expr.Expr {
		d, err := c.numbers(n)
		if err != nil {
			c.failAt(path, err)
			return expr.None
		}
		return d.Expr()
	})
}

// numbers returns the texts of the numbers of n, which is made once.
func (c *compiler) numbers(n *number.Rule) (*dfa.DFA, error) {
	key := n.Key()
	if d := c.patterns[key]; d != nil {
		return d, nil
	}
	d, err := n.Language()
	if err == nil {
		c.patterns[key] = d
	}
	return d, err
}

// numberRule returns the constraints of s on numbers.
func (c *compiler) numberRule(s *shape, path string) *number.Rule {
	n := s.numbers
	n.Integers, n.Fractions = s.types&value.Integer != 0, s.types&value.Fraction != 0
	for _, v := range s.barred {
		if v.Kind == value.AnyNumber {
			if r, ok := c.rational(v, path); ok {
				n.Excluded = append(n.Excluded, r)
			}
		}
	}
	return &n
}
