package schema

import "github.com/ingotml/ingot/grammar/expr"

// array matches the arrays of s.
func (c *compiler) array(s *shape, path string) *expr.Expr {
	prefix, most := 0, -1
	said := false
	for _, a := range s.arrays {
		prefix = max(prefix, len(a.prefix))
		said = said || a.others != nil
	}
	if s.maxItems != nil {
		most = *s.maxItems
	}
	if s.closedList && !said && (most < 0 || most > prefix) {
		most = prefix
	}
	if most >= 0 && most < s.minItems {
		return expr.None
	}
	if len(s.arrays) == 0 && s.minItems == 0 && most < 0 {
		return c.json.Array()
	}
	item := func(i int) *expr.Expr { // from prefix on, all items are the same
		var all conjunction
		for _, a := range s.arrays {
			if i < len(a.prefix) {
				all = append(all, a.prefix[i])
			} else if a.others != nil {
				all = append(all, *a.others)
			}
		}
		return c.compile(all)
	}
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
		first := expr.Seq(others, expr.Repeat(again, max(s.minItems-1, 0), max(more-1, -1)), end)
		switch {
		case more == 0, others.None() && s.minItems == 0:
			return expr.Seq(expr.Text("["), end)
		case s.minItems > 0:
			return expr.Seq(expr.Text("["), first)
		}
		return expr.Seq(expr.Text("["), expr.Alt(first, end))
	}
	rest := expr.Seq(expr.Repeat(again, max(s.minItems-prefix, 0), more), end)
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
		if i >= s.minItems { // the i items before it suffice
			rest = expr.Alt(rest, end)
		}
	}
	return expr.Seq(expr.Text("["), rest)
}
