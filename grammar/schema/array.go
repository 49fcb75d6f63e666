package schema

import (
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/limits"
)

// itemTerms returns the schemas of s for an item; from the longest prefix on, all items have the same.
func (c *compiler) itemTerms(s *shape, i int) (all conjunction) {
	said := make([]bool, len(s.arrays))
	for k, a := range s.arrays {
		switch {
		case i < len(a.prefix):
			all, said[k] = append(all, a.prefix[i]), true
		case a.others != nil:
			all, said[k] = append(all, *a.others), true
		}
	}
	for k, u := range s.closedList {
		evaluated := false
		for n, a := range s.arrays {
			evaluated = evaluated || said[n] && a.scope.within(u.scope)
		}
		for n, inner := range s.closedList {
			evaluated = evaluated || n != k && inner.scope.within(u.scope)
		}
		if !evaluated {
			all = append(all, u.term)
		}
	}
	return all
}

// array matches the arrays of s.
func (c *compiler) array(s *shape, path string) *expr.Expr {
	if s.freeArrays() {
		return c.json.Array()
	}
	l := &itemList{c: c, s: s, path: path, least: s.minItems, most: -1}
	if s.maxItems != nil {
		l.most = *s.maxItems
	}
	for _, a := range s.arrays {
		l.prefix = max(l.prefix, len(a.prefix))
	}
	if s.unique && !l.distinct() {
		return expr.None
	}
	if l.most >= 0 && l.most < l.least {
		return expr.None
	}
	for _, p := range s.contains {
		if p.most >= 0 && p.most < p.least {
			return expr.None
		}
	}
	if len(s.contains) > 0 || l.choices != nil {
		return l.counted()
	}
	return l.expr()
}

// itemList builds the items of an array.
type itemList struct {
	c           *compiler
	s           *shape
	path        string
	prefix      int // items that have schemas of their own
	least, most int // items in all; most < 0: unbounded

	choices []*expr.Expr // of uniqueItems: the values that items may have, each once
	made    map[string]*expr.Expr
}

// expr matches the items without contains.
func (l *itemList) expr() *expr.Expr {
	least, most, prefix := l.least, l.most, l.prefix
	item := func(i int) *expr.Expr { return l.c.compile(l.c.itemTerms(l.s, i)) }
	end := expr.Text("]")
	// The items after the prefix.
	others := expr.None
	if most < 0 || most > prefix {
		others = item(prefix)
	}
	again := expr.Seq(expr.Text(", "), others)
	more := -1
	if most >= 0 {
		more = max(most-prefix, 0)
	}
	if prefix == 0 {
		first := expr.Seq(others, expr.Repeat(again, max(least-1, 0), max(more-1, -1)), end)
		switch {
		case more == 0, others.None() && least == 0:
			return expr.Seq(expr.Text("["), end)
		case least > 0:
			return expr.Seq(expr.Text("["), first)
		}
		return expr.Seq(expr.Text("["), expr.Alt(first, end))
	}
	rest := expr.Seq(expr.Repeat(again, max(least-prefix, 0), more), end)
	for i := prefix - 1; i >= 0; i-- {
		if most >= 0 && i >= most {
			rest = end
			continue
		}
		one := item(i)
		if i > 0 {
			one = expr.Seq(expr.Text(", "), one)
		}
		rest = expr.Seq(one, rest)
		if i >= least { // the i items before it suffice
			rest = expr.Alt(rest, end)
		}
	}
	return expr.Seq(expr.Text("["), rest)
}

// distinct reports whether items can differ. Without a bound on the values only one item is certain to.
func (l *itemList) distinct() bool {
	if l.most >= 0 && l.most <= 1 {
		return true
	}
	choices, ok := l.c.choicesOf(l.c.itemTerms(l.s, l.prefix))
	if !ok || l.prefix > 0 || len(choices) > maxChoices {
		l.c.unsupported(l.path, "the keyword uniqueItems, for items that are not a few constants")
		return true
	}
	if l.choices = choices; l.most < 0 || l.most > len(choices) {
		l.most = len(choices)
	}
	return true
}

// maxChoices bounds the values of items that must differ: each set of them is a state.
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
	var values []*value
	switch {
	case s.consts != nil:
		for _, v := range *s.consts {
			if c.holds(s, v) && !newConstants(values).has(v) {
				values = append(values, v)
			}
		}
	case len(s.unions) == 0 && s.types&^(typeNull|typeBoolean) == 0:
		if s.types&typeNull != 0 {
			values = append(values, &value{kind: typeNull})
		}
		if s.types&typeBoolean != 0 {
			values = append(values, &value{kind: typeBoolean}, &value{kind: typeBoolean, truth: true})
		}
	default:
		return nil, false
	}
	for _, v := range values {
		if v.kind == typeArray || v.kind == typeObject {
			choices = append(choices, constant(v))
		} else {
			choices = append(choices, expr.Words(v.spellings()))
		}
	}
	return choices, true
}

// counting is the state of an array's items: how many there are, how many match each contains, and which choices are
// used.
type counting struct {
	items, used int
	matched     []int
}

// counted matches the items with contains, or with distinct choices.
func (l *itemList) counted() *expr.Expr {
	l.made = map[string]*expr.Expr{}
	return expr.Seq(expr.Text("["), l.rest(counting{matched: make([]int, len(l.s.contains))}))
}

// rest matches the items from a state on and the end of the array.
func (l *itemList) rest(at counting) *expr.Expr {
	key := fmt.Sprint(at)
	if e, ok := l.made[key]; ok {
		return e
	}
	if len(l.made) > limits.GrammarRules/2 {
		l.c.fail(expr.ErrLimit, l.path, "contains or uniqueItems with too many combinations of items")
		return expr.None
	}
	// A state may lead to itself: a rule stands for it.
	rule := &expr.Rule{Name: l.path}
	l.made[key] = expr.Call(rule)
	var parts []*expr.Expr
	done := at.items >= l.least
	for i, p := range l.s.contains {
		done = done && at.matched[i] >= p.least
	}
	if done {
		parts = append(parts, expr.Text("]"))
	}
	if l.most < 0 || at.items < l.most {
		separator := expr.Empty
		if at.items > 0 {
			separator = expr.Text(", ")
		}
		for _, w := range l.ways(at) {
			if l.c.err != nil {
				return expr.None
			}
			if !w.item.None() {
				parts = append(parts, expr.Seq(separator, w.item, l.rest(w.to)))
			}
		}
	}
	rule.Body = expr.Alt(parts...)
	return l.made[key]
}

// itemWay is an item and the state after it.
type itemWay struct {
	item *expr.Expr
	to   counting
}

// ways returns the items that may follow.
func (l *itemList) ways(at counting) (ways []itemWay) {
	// Counts saturate where they no longer matter.
	next := counting{items: min(at.items+1, max(1, l.prefix, l.least, l.most)), used: at.used, matched: at.matched}
	if l.choices != nil && len(l.s.contains) == 0 {
		for i, choice := range l.choices {
			if at.used&(1<<i) == 0 {
				to := next
				to.used |= 1 << i
				ways = append(ways, itemWay{choice, to})
			}
		}
		return ways
	}
	terms := l.c.itemTerms(l.s, min(at.items, l.prefix))
	// For each contains, an item matches it, or does not, or need not be known.
	n := len(l.s.contains)
	for pick := range 1 << n {
		all := append(conjunction{}, terms...)
		to := next
		to.matched = append([]int(nil), at.matched...)
		usable := true
		for i, p := range l.s.contains {
			switch {
			case pick&(1<<i) != 0:
				if p.most < 0 && at.matched[i] >= p.least || p.most >= 0 && at.matched[i] >= p.most {
					usable = false // nothing to gain, or too many
				}
				all = append(all, p.term)
				to.matched[i]++
			case p.most >= 0:
				all = append(all, p.term.negated())
			}
		}
		if usable {
			ways = append(ways, itemWay{l.c.compile(all), to})
		}
	}
	return ways
}
