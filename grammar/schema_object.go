package grammar

import (
	"slices"

	"github.com/ingotml/ingot/limits"
)

// object matches the objects of s: listed properties in order, each with its separator, then others if allowed.
func (c *schemaCompiler) object(s *shape, path string) *expr {
	names, open := c.members(s)
	var others *expr
	if open {
		others = c.compile(c.schemasOf(s, "", true))
	}
	if s.maxMembers != nil && (*s.maxMembers < len(s.required) || *s.maxMembers < s.minMembers) {
		return noExpr
	}
	if len(names) == 0 && open && s.minMembers == 0 && s.maxMembers == nil && len(s.names) == 0 &&
		len(c.schemasOf(s, "", true)) == 0 {
		return c.json.object()
	}
	members := make([]*expr, len(names))
	required := make([]bool, len(names))
	all := setOf(s.required)
	for i, name := range names {
		required[i] = all[name]
		key := &value{kind: typeString, text: name}
		schemas := c.schemasOf(s, name, false)
		value := noExpr
		if !s.closed || len(schemas) > 0 {
			value = c.compile(schemas)
		}
		if len(s.names) > 0 && !c.allHold(s.names, key, path) {
			value = noExpr
		}
		if value.none() && required[i] {
			return noExpr // a required property has no valid value
		}
		members[i] = seqExpr(wordsExpr(key.words()), textExpr(": "), value)
	}
	var other *expr
	if others != nil && !others.none() {
		key := c.otherKey(s, names, path)
		if other = seqExpr(key, textExpr(": "), others); other.none() {
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
				c.fail(errUnsupported, path, "minProperties %d exceeds the number of listed properties plus one", s.minMembers)
			}
			return noExpr
		}
		if min(limit, len(names)+1)*(len(names)+1) > limits.GrammarPlaces {
			c.fail(errLimit, path, "minProperties or maxProperties with %d listed properties", len(names))
			return noExpr
		}
	}
	type at struct{ i, n int }
	made := map[at]*expr{}
	var rest func(i, n int) *expr
	rest = func(i, n int) *expr {
		if e, ok := made[at{i, n}]; ok {
			return e
		}
		separator := emptyExpr
		if n > 0 {
			separator = textExpr(", ")
		}
		full := s.maxMembers != nil && n >= *s.maxMembers
		var e *expr
		if i == len(names) {
			end := textExpr("}")
			var parts []*expr
			if n >= s.minMembers {
				parts = append(parts, end)
			}
			if other != nil && !full && n+1 >= s.minMembers {
				more := -1
				if s.maxMembers != nil {
					more = *s.maxMembers - n - 1
				}
				parts = append(parts, seqExpr(separator, other, repeatExpr(seqExpr(textExpr(", "), other), 0, more), end))
			}
			e = altExpr(parts...)
		} else {
			var parts []*expr
			if !full {
				parts = append(parts, seqExpr(separator, members[i], rest(i+1, min(n+1, limit))))
			}
			if !required[i] {
				parts = append(parts, rest(i+1, n))
			}
			e = altExpr(parts...)
		}
		made[at{i, n}] = e
		return e
	}
	return seqExpr(textExpr("{"), rest(0, 0))
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
func (c *schemaCompiler) members(s *shape) (names []string, open bool) {
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
func (c *schemaCompiler) schemasOf(s *shape, name string, other bool) (all conjunction) {
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
func (c *schemaCompiler) otherKey(s *shape, names []string, path string) *expr {
	if len(s.names) > 0 {
		if len(names) > 0 {
			c.fail(errUnsupported, path, "propertyNames together with listed properties and additional ones")
			return noExpr
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
		return c.json.string()
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	more := repeatExpr(anyChar, 0, -1)
	var at func(words [][]rune) *expr
	// at completes a name after a prefix; words are the rests of the listed names with that prefix.
	at = func(words [][]rune) *expr {
		if !c.step(20, path) {
			return noExpr
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
		var parts []*expr
		if !listed {
			parts = append(parts, textExpr(`"`))
		}
		for _, r := range order {
			parts = append(parts, seqExpr(charExpr(runeSet{r, r}), at(kids[r])))
		}
		// A character outside of next, and not an escape that could mean one of next.
		parts = append(parts, seqExpr(charExpr(tidy(next).not()), more, textExpr(`"`)))
		return altExpr(parts...)
	}
	words := make([][]rune, len(sorted))
	for i, n := range sorted {
		words[i] = []rune(n)
	}
	return seqExpr(textExpr(`"`), at(words))
}
