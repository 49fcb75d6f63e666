package schema

import (
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// itemList builds the items of an array.
type itemList struct {
	c           *compiler
	compile     func(conjunction) *expr.Expr // matches an item
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
	item := func(i int) *expr.Expr { return l.compile(l.s.itemTerms(i)) }
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
	terms := l.s.itemTerms(min(at.items, l.prefix))
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
			ways = append(ways, itemWay{l.compile(all), to})
		}
	}
	return ways
}
