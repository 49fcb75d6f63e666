package grammar

// array matches the arrays of s.
func (c *schemaCompiler) array(s *shape, path string) *expr {
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
		return noExpr
	}
	if len(s.arrays) == 0 && s.minItems == 0 && most < 0 {
		return c.json.array()
	}
	item := func(i int) *expr { // from prefix on, all items are the same
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
	end := textExpr("]")
	// The items after the prefix.
	others := noExpr
	if most < 0 || most > prefix {
		others = item(prefix)
	}
	again := seqExpr(textExpr(", "), others)
	more := -1
	if most >= 0 {
		more = max(most-prefix, 0)
	}
	if prefix == 0 {
		first := seqExpr(others, repeatExpr(again, max(s.minItems-1, 0), max(more-1, -1)), end)
		switch {
		case more == 0, others.none() && s.minItems == 0:
			return seqExpr(textExpr("["), end)
		case s.minItems > 0:
			return seqExpr(textExpr("["), first)
		}
		return seqExpr(textExpr("["), altExpr(first, end))
	}
	rest := seqExpr(repeatExpr(again, max(s.minItems-prefix, 0), more), end)
	for i := prefix - 1; i >= 0; i-- {
		if most >= 0 && i >= most {
			rest = end
			continue
		}
		one := item(i)
		if i > 0 {
			one = seqExpr(textExpr(", "), one)
		}
		rest = seqExpr(one, rest)
		if i >= s.minItems { // the i items before it suffice
			rest = altExpr(rest, end)
		}
	}
	return seqExpr(textExpr("["), rest)
}
