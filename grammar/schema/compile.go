package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/value"
)

// array matches the arrays of s.
func (c *compiler) array(s *shape, path string) *expr.Expr {
	if s.freeArrays() {
		return c.json.Array()
	}
	l := &itemList{c: c, compile: c.compile, s: s, path: path, least: s.minItems, most: -1}
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

// compile matches the values that satisfy all terms.
func (c *compiler) compile(all conjunction) *expr.Expr {
	if !c.step(1, all.path()) {
		return expr.None
	}
	key := all.key()
	if m := c.made[key]; m != nil { // compiled before: share one rule unless it is small
		if m.rule == nil {
			if m.e != nil && (m.e.Op == expr.OpCall || m.e.Op == expr.OpText || m.e == jsontext.Boolean || m.e.None()) {
				return m.e
			}
			m.rule = &expr.Rule{Name: all.path(), Body: m.e}
		}
		return expr.Call(m.rule)
	}
	m := &made{}
	c.made[key] = m
	e := c.union(c.shapeOf(all), all.path())
	m.e = e
	if m.rule != nil {
		m.rule.Body = e
		return expr.Call(m.rule)
	}
	return e
}

// union matches the values of s. It combines each alternative of s with everything else that s requires.
func (c *compiler) union(s *shape, path string) *expr.Expr {
	if c.err != nil || s.types == 0 {
		return expr.None
	}
	if s.consts != nil {
		return c.constants(s)
	}
	c.absorb(s)
	if len(s.unions) == 0 && len(s.extras) == 0 {
		return c.expr(s, path)
	}
	if len(s.unions) == 1 && s.bare { // nothing but alternatives
		first := s.unions[0]
		parts := make([]*expr.Expr, len(first.parts))
		for i, t := range first.parts {
			all := conjunction{t}
			if first.one {
				all = append(all, c.others(&shape{types: value.AnyType}, first.parts, i)...)
			}
			parts[i] = c.compile(all)
		}
		return expr.Alt(parts...)
	}
	if s.types == value.String && len(s.extras) == 0 { // alternatives of strings are one automaton
		before := c.err
		if d := c.textsOf(s, path, 0); d != nil && c.err == nil {
			return jsontext.Quoted(d.Expr())
		}
		if c.err = clearLimit(c.err); c.err != before {
			return expr.None
		}
	}
	var parts []*expr.Expr
	c.expand(s, func(one *shape) bool {
		if c.contradicts(one, 0) {
			return c.err == nil
		}
		parts = append(parts, c.union(one, path))
		return c.err == nil
	})
	return expr.Alt(parts...)
}

// expr matches the values of s, which has no alternatives.
func (c *compiler) expr(s *shape, path string) *expr.Expr {
	var parts []*expr.Expr
	add := func(t value.Types, e func() *expr.Expr) {
		if s.types&t != 0 && c.err == nil {
			parts = append(parts, e())
		}
	}
	if s.types == value.AnyType && s.free() {
		return c.json.Value()
	}
	add(value.Object, func() *expr.Expr { return c.object(s, path) })
	add(value.Array, func() *expr.Expr { return c.array(s, path) })
	add(value.String, func() *expr.Expr { return c.text(s, path) })
	add(value.AnyNumber, func() *expr.Expr { return c.number(s, path) })
	add(value.Boolean, func() *expr.Expr {
		return expr.Words(slices.DeleteFunc([]string{"true", "false"}, func(w string) bool { return s.bars(w) }))
	})
	if !s.bars("null") {
		add(value.Null, func() *expr.Expr { return jsontext.Null })
	}
	return expr.Alt(parts...)
}

// object matches the objects of s: listed properties in order, each with its separator, then others if allowed.
func (c *compiler) object(s *shape, path string) *expr.Expr {
	if s.freeObjects() {
		return c.json.Object()
	}
	names := s.members()
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
	all := value.SetOf(s.required)
	for _, name := range names {
		part := expr.None
		if allowed == nil || allowed.Match(name) {
			part = c.compile(s.memberTerms(name))
		}
		required := all[name]
		if part.None() {
			if required {
				return expr.None
			}
			continue
		}
		key := expr.Words(value.Text(name).Spellings())
		m.members = append(m.members, expr.Seq(key, expr.Text(": "), part))
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
		all := s.combine(func(o *objectPart) []term { return o.termsOfOthers() })
		if c.compile(all).None() {
			return nil
		}
	}
	for _, g := range c.groups(s, names, path) {
		part := c.compile(g.terms)
		if part.None() {
			continue
		}
		key := c.json.Text()
		if g.names != nil {
			key = jsontext.Quoted(g.expr(c))
		}
		others = append(others, other{key, expr.Seq(expr.Text(": "), part)})
	}
	return others
}
