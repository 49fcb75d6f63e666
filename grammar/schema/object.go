package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// termsOf returns the schemas of a part for a property.
func (o *objectPart) termsOf(name string) (all []term) {
	if t, ok := o.properties[name]; ok {
		all = append(all, t)
	}
	for _, p := range o.patterns {
		if p.dfa.Match(name) {
			all = append(all, p.term)
		}
	}
	if len(all) == 0 && o.others != nil {
		all = append(all, *o.others)
	}
	return all
}

// termsOfOthers returns the schemas of a part for properties that it neither lists nor has a pattern for.
func (o *objectPart) termsOfOthers() []term {
	if o.others == nil {
		return nil
	}
	return []term{*o.others}
}

// memberTerms returns the schemas of s for a property.
func (c *compiler) memberTerms(s *shape, name string) conjunction {
	return c.combine(s, func(o *objectPart) []term { return o.termsOf(name) })
}

// combine returns what the parts of s say about a property, and the unevaluated keywords whose scopes say nothing.
func (c *compiler) combine(s *shape, of func(*objectPart) []term) (all conjunction) {
	said := make([]bool, len(s.objects))
	for i := range s.objects {
		terms := of(&s.objects[i])
		said[i] = len(terms) > 0
		all = append(all, terms...)
	}
	for i, u := range s.closed {
		evaluated := false
		for k, o := range s.objects {
			evaluated = evaluated || said[k] && o.scope.within(u.scope)
		}
		for k, inner := range s.closed { // evaluates all properties
			evaluated = evaluated || k != i && inner.scope.within(u.scope)
		}
		if !evaluated {
			all = append(all, u.term)
		}
	}
	return all
}

// members returns the properties that s lists, in order, then those that are only required.
func (c *compiler) members(s *shape) (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, o := range s.objects {
		if !o.silent {
			for _, name := range o.names {
				add(name)
			}
		}
	}
	for _, name := range s.required {
		add(name)
	}
	for _, o := range s.objects {
		for _, name := range o.names {
			add(name)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(s.absent, n) })
}

// object matches the objects of s: listed properties in order, each with its separator, then others if allowed.
func (c *compiler) object(s *shape, path string) *expr.Expr {
	if s.freeObjects() {
		return c.json.Object()
	}
	names := c.members(s)
	if len(names) > 1 {
		c.orders = append(c.orders, names)
	}
	if s.maxMembers != nil && (*s.maxMembers < len(s.required) || *s.maxMembers < s.minMembers) {
		return expr.None
	}
	m := &memberList{c: c, path: path, least: s.minMembers, most: -1, other: expr.None}
	if s.maxMembers != nil {
		m.most = *s.maxMembers
	}
	var allowed *dfa.DFA
	if len(s.names) > 0 {
		if allowed = c.nameTexts(s.names, path); c.err != nil {
			return expr.None
		}
	}
	all := setOf(s.required)
	for _, name := range names {
		value := expr.None
		if allowed == nil || allowed.Match(name) {
			value = c.compile(c.memberTerms(s, name))
		}
		required := all[name]
		if value.None() {
			if required {
				return expr.None
			}
			continue
		}
		key := expr.Words(textValue(name).spellings())
		m.members = append(m.members, expr.Seq(key, expr.Text(": "), value))
		m.required = append(m.required, required)
	}
	if slices.ContainsFunc(s.required, func(n string) bool { return slices.Contains(s.absent, n) }) {
		return expr.None
	}
	others := c.unlisted(s, names, path)
	for _, o := range others {
		m.other = expr.Alt(m.other, o.member())
	}
	if listed := len(m.members); len(others) > 0 && m.least > listed+1 && !m.distinct(others) {
		return expr.None
	}
	return m.expr()
}

// unlisted returns the properties that s does not list.
func (c *compiler) unlisted(s *shape, names []string, path string) (others []other) {
	if len(s.names) == 0 && !slices.ContainsFunc(s.objects, func(o objectPart) bool { return len(o.patterns) > 0 }) {
		// One group: its names are of use only if it can have values.
		all := c.combine(s, func(o *objectPart) []term { return o.termsOfOthers() })
		if c.compile(all).None() {
			return nil
		}
	}
	for _, g := range c.groups(s, names, path) {
		value := c.compile(g.terms)
		if value.None() {
			continue
		}
		key := c.json.Text()
		if g.names != nil {
			key = jsontext.Quoted(g.expr(c))
		}
		others = append(others, other{key, expr.Seq(expr.Text(": "), value)})
	}
	return others
}

// other is unlisted properties with one schema: their names, and what follows.
type other struct{ name, value *expr.Expr }

func (o other) member() *expr.Expr { return expr.Seq(o.name, o.value) }

// next matches a property whose name differs from those before it, and its separator.
func (o other) next() *expr.Expr {
	return expr.Seq(expr.Distinct(expr.Seq(expr.Text(", "), o.name)), o.value)
}
