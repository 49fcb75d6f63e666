package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/value"
)

// Depths and sizes of the search for a contradiction: beyond them two schemas may overlap.
const (
	maxContradiction = 4
	maxAlternatives  = 200
)

// contradicts reports whether s provably has no value.
func (c *compiler) contradicts(s *shape, depth int) bool {
	left := maxAlternatives
	return c.contradicted(s, depth, &left)
}

func (c *compiler) contradicted(s *shape, depth int, left *int) bool {
	switch {
	case c.err != nil || s.types == 0:
		return true
	case s.consts != nil:
		return !slices.ContainsFunc(*s.consts, func(v *value.Value) bool { return c.holds(s, v) })
	case c.noValue(s, depth):
		return true
	case len(s.unions) == 0 || depth >= maxContradiction:
		return false
	}
	all := true
	c.expand(s, func(one *shape) bool {
		*left--
		all = *left > 0 && c.contradicted(one, depth+1, left)
		return all
	})
	return all
}

// empty reports whether no value satisfies all terms, provably.
func (c *compiler) empty(all conjunction, depth int) bool {
	if len(all) == 0 || depth > maxContradiction {
		return false
	}
	key := all.key()
	if known, ok := c.empties[key]; ok {
		return known
	}
	c.empties[key] = false
	is := c.contradicts(c.shapeOf(all), depth)
	if is || depth == 0 {
		c.empties[key] = is
	} else if !is {
		delete(c.empties, key) // a shallower search may find more
	}
	return is
}

// noValue reports whether each type of s is provably without values, whatever its unions are.
func (c *compiler) noValue(s *shape, depth int) bool {
	if s.types&value.Null != 0 && !s.bars("null") {
		return false
	}
	if s.types&value.Boolean != 0 && !(s.bars("true") && s.bars("false")) {
		return false
	}
	// What is quick to see comes first.
	n, r := c.numberRule(s, "#"), &s.strings
	plain := len(r.patterns)+len(s.barred) == 0
	switch {
	case s.types&value.AnyNumber != 0 && n.Free() && n.Fractions,
		s.types&value.String != 0 && plain && (r.maxLength == nil || *r.maxLength >= r.minLength),
		s.types&value.Array != 0 && s.freeArrays(), s.types&value.Object != 0 && s.freeObjects(),
		s.types&value.Array != 0 && !c.noArray(s, depth), s.types&value.Object != 0 && !c.noObject(s, depth):
		return false
	}
	if s.types&value.AnyNumber != 0 {
		if is, known := n.Inhabited(); is {
			return false
		} else if known {
			return s.types&value.String == 0 || plain || c.noText(s)
		}
		if d, err := c.numbers(n); err != nil || !d.Empty() {
			return false
		}
	}
	return s.types&value.String == 0 || plain || c.noText(s)
}

func (c *compiler) noText(s *shape) bool {
	if r := &s.strings; len(r.patterns) == 0 && (r.maxLength == nil || *r.maxLength >= max(1, r.minLength)) {
		return false // more texts than constants
	}
	before := c.err
	d := c.texts(s, "#")
	if c.err != before {
		c.err = before
		return false
	}
	return d.Empty() && !d.Short()
}

func (c *compiler) noArray(s *shape, depth int) bool {
	if s.maxItems != nil && *s.maxItems < s.minItems {
		return true
	}
	for i := range min(s.minItems, 8) {
		if c.empty(s.itemTerms(i), depth+1) {
			return true
		}
	}
	for _, p := range s.contains {
		if p.most >= 0 && p.most < p.least {
			return true
		}
		if p.least > 0 && len(s.arrays) == 1 && len(s.arrays[0].prefix) == 0 && s.arrays[0].others != nil &&
			c.empty(conjunction{*s.arrays[0].others, p.term}, depth+1) {
			return true
		}
	}
	return false
}

func (c *compiler) noObject(s *shape, depth int) bool {
	if s.maxMembers != nil && *s.maxMembers < max(s.minMembers, len(s.required)) {
		return true
	}
	for _, name := range s.required {
		if slices.Contains(s.absent, name) || c.empty(s.memberTerms(name), depth+1) {
			return true
		}
	}
	return false
}
