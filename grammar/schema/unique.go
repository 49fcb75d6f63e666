package schema

import (
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/instance"
	"github.com/ingotml/ingot/grammar/value"
	"github.com/ingotml/ingot/internal/limits"
)

// Items that must differ are compared while a text is written. What an array requires must be possible whatever its
// items are so far, because nothing looks ahead: as many values as there are items before suffice.

// distinct prepares items that differ, and reports whether they can.
func (l *itemList) distinct() bool {
	if l.prefix == 0 && len(l.s.contains) == 0 {
		choices, ok := l.c.choicesOf(l.s.itemTerms(0))
		if ok && len(choices) <= maxChoices {
			if l.choices = choices; l.most < 0 || l.most > len(choices) {
				l.most = len(choices)
			}
			return true
		}
	}
	if l.least > limits.GrammarUniqueItems {
		const format = "minItems %d next to uniqueItems; at most %d"
		l.c.fail(expr.ErrLimit, l.path, format, l.least, limits.GrammarUniqueItems)
		return false
	}
	has := l.enough()
	if has == instance.Few && l.prefix == 0 && len(l.s.contains) == 0 {
		return false
	}
	if has != instance.Plenty {
		l.c.unsupported(l.path, "the keyword uniqueItems, for required items of few or unusual values")
		return true
	}
	l.compared = true
	return true
}

// enough reports whether a required item always has a value that no item before it has.
func (l *itemList) enough() instance.Amount {
	terms := func(i int) conjunction { return l.s.itemTerms(min(i, l.prefix)) }
	for i := 1; i < min(l.least, l.prefix); i++ {
		if has := l.values(terms(i), i+1); has != instance.Plenty {
			return has
		}
	}
	if l.least > max(1, l.prefix) {
		if has := l.values(terms(l.prefix), l.least); has != instance.Plenty {
			return has
		}
	}
	required := 0
	for _, p := range l.s.contains {
		if p.least > 0 {
			required++
		}
	}
	for _, p := range l.s.contains {
		// Of the ways to count, one counts every item that matches: as many others are left.
		if l.prefix > 0 || required > 1 && l.most >= 0 {
			return instance.Unknown
		}
		if p.least > 1 && l.values(append(terms(0), p.term), p.least) != instance.Plenty {
			return instance.Unknown
		}
		if p.most >= 0 && l.least > 1 && l.values(append(terms(0), p.term.negated()), l.least) != instance.Plenty {
			return instance.Unknown
		}
	}
	return instance.Plenty
}

// maxChoices bounds the values of items that must differ if each set of them is a state.
const maxChoices = 10

// choicesOf returns the values that satisfy all terms, if they are constants.
func (c *compiler) choicesOf(all conjunction) (choices []*expr.Expr, ok bool) {
	s := c.shapeOf(all)
	for range limits.GrammarNesting { // references, as generators write for enumerations
		if s.consts != nil || !s.bare || len(s.unions) != 1 || len(s.unions[0].parts) != 1 {
			break
		}
		s = c.shapeOf(conjunction{s.unions[0].parts[0]})
	}
	var values []*value.Value
	switch {
	case s.consts != nil:
		for _, v := range *s.consts {
			if c.holds(s, v) && !value.NewConstants(values).Has(v) {
				values = append(values, v)
			}
		}
	case len(s.unions) == 0 && s.types&^(value.Null|value.Boolean) == 0:
		if s.types&value.Null != 0 {
			values = append(values, &value.Value{Kind: value.Null})
		}
		if s.types&value.Boolean != 0 {
			values = append(values, &value.Value{Kind: value.Boolean}, &value.Value{Kind: value.Boolean, Truth: true})
		}
	default:
		return nil, false
	}
	for _, v := range values {
		if v.Kind == value.Array || v.Kind == value.Object {
			choices = append(choices, value.Expr(v))
		} else {
			choices = append(choices, expr.Words(v.Spellings()))
		}
	}
	return choices, true
}

// values reports whether at least n values satisfy all terms. It writes texts of the schema until they suffice.
func (l *itemList) values(all conjunction, n int) instance.Amount {
	e := l.compile(all)
	switch {
	case l.c.err != nil:
		return instance.Unknown
	case e.None():
		return instance.Few
	}
	return l.c.sample(e, n)
}

// sample is values for the texts of an expression.
func (c *compiler) sample(e *expr.Expr, n int) instance.Amount {
	if e.Op == expr.OpCall && c.json.Endless(e.Rule) {
		return instance.Plenty
	}
	return instance.Sample(e, n)
}
