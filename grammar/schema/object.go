package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/limits"
)

// object matches the objects of s: listed properties in order, each with its separator, then others if allowed.
func (c *compiler) object(s *shape, path string) *expr.Expr {
	names, open := c.members(s)
	var others *expr.Expr
	if open {
		others = c.compile(c.schemasOf(s, "", true))
	}
	if s.maxMembers != nil && (*s.maxMembers < len(s.required) || *s.maxMembers < s.minMembers) {
		return expr.None
	}
	if len(names) == 0 && open && s.minMembers == 0 && s.maxMembers == nil && len(s.names) == 0 &&
		len(c.schemasOf(s, "", true)) == 0 {
		return c.json.Object()
	}
	members := make([]*expr.Expr, len(names))
	required := make([]bool, len(names))
	all := setOf(s.required)
	for i, name := range names {
		required[i] = all[name]
		key := &value{kind: typeString, text: name}
		schemas := c.schemasOf(s, name, false)
		value := expr.None
		if !s.closed || len(schemas) > 0 {
			value = c.compile(schemas)
		}
		if len(s.names) > 0 && !c.allHold(s.names, key, path) {
			value = expr.None
		}
		if value.None() && required[i] {
			return expr.None // a required property has no valid value
		}
		members[i] = expr.Seq(expr.Words(key.words()), expr.Text(": "), value)
	}
	var other *expr.Expr
	if others != nil && !others.None() {
		key := c.otherKey(s, names, path)
		if other = expr.Seq(key, expr.Text(": "), others); other.None() {
			other = nil
		}
	}
	// The member count saturates where it no longer matters: at 1, which decides whether a separator is due, or at the
	// limits. Unlisted properties add at most one towards minProperties, because two of them could have the same name.
	limit := 1
	if s.minMembers > 0 || s.maxMembers != nil {
		limit = max(limit, s.minMembers)
		if s.maxMembers != nil {
			limit = max(limit, *s.maxMembers)
		}
		listed := len(names)
		if other != nil {
			listed++
		}
		if s.minMembers > listed {
			if other != nil {
				c.fail(expr.ErrUnsupported, path, "minProperties %d exceeds the number of listed properties plus one", s.minMembers)
			}
			return expr.None
		}
		if min(limit, len(names)+1)*(len(names)+1) > limits.GrammarPlaces {
			c.fail(expr.ErrLimit, path, "minProperties or maxProperties with %d listed properties", len(names))
			return expr.None
		}
	}
	type at struct{ i, n int }
	made := map[at]*expr.Expr{}
	var rest func(i, n int) *expr.Expr
	rest = func(i, n int) *expr.Expr {
		if e, ok := made[at{i, n}]; ok {
			return e
		}
		separator := expr.Empty
		if n > 0 {
			separator = expr.Text(", ")
		}
		full := s.maxMembers != nil && n >= *s.maxMembers
		var e *expr.Expr
		if i == len(names) {
			end := expr.Text("}")
			var parts []*expr.Expr
			if n >= s.minMembers {
				parts = append(parts, end)
			}
			if other != nil && !full && n+1 >= s.minMembers {
				more := -1
				if s.maxMembers != nil {
					more = *s.maxMembers - n - 1
				}
				parts = append(parts, expr.Seq(separator, other, expr.Repeat(expr.Seq(expr.Text(", "), other), 0, more), end))
			}
			e = expr.Alt(parts...)
		} else {
			var parts []*expr.Expr
			if !full {
				parts = append(parts, expr.Seq(separator, members[i], rest(i+1, min(n+1, limit))))
			}
			if !required[i] {
				parts = append(parts, rest(i+1, n))
			}
			e = expr.Alt(parts...)
		}
		made[at{i, n}] = e
		return e
	}
	return expr.Seq(expr.Text("{"), rest(0, 0))
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// members returns the properties that s lists, in order, then those that are only required, and whether others are
// allowed.
func (c *compiler) members(s *shape) (names []string, open bool) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	said := false
	for _, o := range s.objects {
		for _, name := range o.names {
			add(name)
		}
		said = said || o.others != nil
	}
	open = !s.closed && (said || len(names) == 0)
	for _, name := range s.required {
		add(name)
	}
	return names, open
}

// schemasOf returns the schemas of s for a property; other: for properties that no part of s lists.
func (c *compiler) schemasOf(s *shape, name string, other bool) (all conjunction) {
	for _, o := range s.objects {
		if l, ok := o.properties[name]; ok && !other {
			all = append(all, l)
		} else if o.others != nil {
			all = append(all, *o.others)
		}
	}
	return all
}

// otherKey matches the quoted names that are not in names.
func (c *compiler) otherKey(s *shape, names []string, path string) *expr.Expr {
	if len(s.names) > 0 {
		if len(names) > 0 {
			c.fail(expr.ErrUnsupported, path, "propertyNames together with listed properties and additional ones")
			return expr.None
		}
		var key shape
		key.types = anyType
		for _, l := range s.names {
			c.gather(&key, l, nil)
		}
		key.types &= typeString
		return c.union(&key, path)
	}
	if len(names) == 0 {
		return c.json.Text()
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	more := expr.Repeat(jsontext.AnyChar, 0, -1)
	var at func(words [][]rune) *expr.Expr
	// at completes a name after a prefix; words are the rests of the listed names with that prefix.
	at = func(words [][]rune) *expr.Expr {
		if !c.step(20, path) {
			return expr.None
		}
		listed := false
		var next []rune // ranges
		kids := map[rune][][]rune{}
		var order []rune
		for _, w := range words {
			if len(w) == 0 {
				listed = true
				continue
			}
			if _, ok := kids[w[0]]; !ok {
				order = append(order, w[0])
				next = append(next, w[0], w[0])
			}
			kids[w[0]] = append(kids[w[0]], w[1:])
		}
		var parts []*expr.Expr
		if !listed {
			parts = append(parts, expr.Text(`"`))
		}
		for _, r := range order {
			parts = append(parts, expr.Seq(jsontext.Char(expr.RuneSet{r, r}), at(kids[r])))
		}
		// A character outside of next, and not an escape that could mean one of next.
		parts = append(parts, expr.Seq(jsontext.Char(expr.RuneSetOf(next).Not()), more, expr.Text(`"`)))
		return expr.Alt(parts...)
	}
	words := make([][]rune, len(sorted))
	for i, n := range sorted {
		words[i] = []rune(n)
	}
	return expr.Seq(expr.Text(`"`), at(words))
}
