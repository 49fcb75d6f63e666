package schema

import (
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
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
	for _, p := range s.contains {
		if p.most >= 0 && p.most < p.least {
			return expr.None
		}
	}
	if s.unique && (l.most < 0 || l.most > 1) && !l.distinct() || l.most >= 0 && l.most < l.least {
		return expr.None
	}
	e := l.expr
	if len(s.contains) > 0 || l.choices != nil {
		e = l.counted
	}
	if l.compared {
		return expr.Seq(expr.Text("["), expr.Compared(e(), l.least))
	}
	return expr.Seq(expr.Text("["), e())
}

// itemList builds the items of an array.
type itemList struct {
	c           *compiler
	s           *shape
	path        string
	prefix      int // items that have schemas of their own
	least, most int // items in all; most < 0: unbounded

	choices  []*expr.Expr // of uniqueItems: the values that items may have, each once
	compared bool         // of uniqueItems: each item is compared with those before it
	made     map[string]*expr.Expr
}

// next matches an item and its separator, after another one.
func (l *itemList) next(item *expr.Expr) *expr.Expr {
	e := expr.Seq(expr.Text(", "), item)
	if l.compared {
		return expr.Distinct(e)
	}
	return e
}

// expr matches the items without contains, and the end of the array.
func (l *itemList) expr() *expr.Expr {
	least, most, prefix := l.least, l.most, l.prefix
	item := func(i int) *expr.Expr { return l.c.compile(l.c.itemTerms(l.s, i)) }
	end := expr.Text("]")
	// The items after the prefix.
	others := expr.None
	if most < 0 || most > prefix {
		others = item(prefix)
	}
	again := l.next(others)
	more := -1
	if most >= 0 {
		more = max(most-prefix, 0)
	}
	if prefix == 0 {
		first := expr.Seq(others, expr.Repeat(again, max(least-1, 0), max(more-1, -1)), end)
		switch {
		case more == 0, others.None() && least == 0:
			return end
		case least > 0:
			return first
		}
		return expr.Alt(first, end)
	}
	rest := expr.Seq(expr.Repeat(again, max(least-prefix, 0), more), end)
	for i := prefix - 1; i >= 0; i-- {
		if most >= 0 && i >= most {
			rest = end
			continue
		}
		one := item(i)
		if i > 0 {
			one = l.next(one)
		}
		rest = expr.Seq(one, rest)
		if i >= least { // the i items before it suffice
			rest = expr.Alt(rest, end)
		}
	}
	return rest
}

// counting is the state of an array's items: how many there are, how many match each contains, and which choices are
// used.
type counting struct {
	items, used int
	matched     []int
}

// counted matches the items with contains, or with distinct choices, and the end of the array.
func (l *itemList) counted() *expr.Expr {
	l.made = map[string]*expr.Expr{}
	return l.rest(counting{matched: make([]int, len(l.s.contains))})
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
		for _, w := range l.ways(at) {
			if l.c.err != nil {
				return expr.None
			}
			switch {
			case w.item.None():
			case at.items > 0:
				parts = append(parts, expr.Seq(l.next(w.item), l.rest(w.to)))
			default:
				parts = append(parts, expr.Seq(w.item, l.rest(w.to)))
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
	if l.choices != nil {
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
