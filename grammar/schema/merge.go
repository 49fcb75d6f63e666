package schema

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/value"
)

// add merges a term into s and notes it: constants are checked against it.
func (c *compiler) add(s *shape, t term) {
	s.terms = append(s.terms, t)
	c.gather(s, t)
}

// gather merges a term into s.
func (c *compiler) gather(s *shape, t term) {
	if !c.step(1, t.path) {
		return
	}
	t.in = c.doc.ResourceOf(t.schema, t.in)
	t.outer = c.enter(t.outer, t.in)
	s.held = append(s.held, t.held())
	switch v := t.schema; v.Kind {
	case value.Boolean:
		if v.Truth == t.not {
			s.types = 0
		}
		return
	case value.Object:
	default:
		c.fail(expr.ErrInvalid, t.path, "a schema must be an object or a boolean")
		return
	}
	if t.chain.has(t.schema, t.not) && t.only == "" {
		c.fail(expr.ErrInvalid, t.path, "the schema refers to itself without a property or an item between")
		return
	}
	if t.only == "" {
		t.chain = &chain{t.chain, t.schema, t.not}
	}
	if t.not {
		c.gatherNot(s, t)
		return
	}
	alone := t.in.Dialect.RefAlone() && t.schema.Get("$ref") != nil
	constraints, onlyUnion := 0, true
	for _, k := range t.schema.Keys {
		if c.applies(t, k) && (!alone || k == "$ref") {
			constraints++
			onlyUnion = onlyUnion && isUnion[k]
		} else if !document.Annotations[k] && keywords[k] == nil && c.strict && !strings.HasPrefix(k, "x-") {
			c.fail(expr.ErrUnsupported, t.path, "the keyword %s is not one of the specification", k)
			return
		}
	}
	// bare describes this schema alone: schemas gathered before or after it do not count.
	bare := s.types == value.AnyType && s.free() && t.scope == nil && constraints == 1 && onlyUnion
	s.bare = bare
	if !alone {
		t = c.openScope(s, t)
	}
	for i, k := range t.schema.Keys {
		if !c.applies(t, k) || alone && k != "$ref" {
			continue
		}
		if keywords[k](c, s, t.schema.Items[i], t); c.err != nil {
			return
		}
	}
	s.bare = bare && len(s.unions) == 1
	if !alone {
		c.gatherParts(s, t)
	}
}

// openScope returns t within a scope of its own if it has unevaluated keywords.
func (c *compiler) openScope(s *shape, t term) term {
	properties, items := t.schema.Get("unevaluatedProperties"), t.schema.Get("unevaluatedItems")
	if properties == nil && items == nil || !t.in.Dialect.Has("unevaluatedProperties") {
		return t
	}
	t.scope = &scope{t.scope}
	if properties != nil {
		s.closed = append(s.closed, unevaluated{t.scope, t.sub(properties, "/unevaluatedProperties")})
	}
	if items != nil {
		s.closedList = append(s.closedList, unevaluated{t.scope, t.sub(items, "/unevaluatedItems")})
	}
	return t
}

func (c *compiler) shapeOf(all conjunction) *shape {
	s := &shape{types: value.AnyType}
	for _, t := range all {
		t.chain = nil
		c.add(s, t)
	}
	return s
}

// expand calls use with each alternative of one union of s, combined with all else that s requires, until use returns
// false.
func (c *compiler) expand(s *shape, use func(*shape) bool) {
	if len(s.unions) == 0 {
		c.expandExtra(s, use)
		return
	}
	// A union with few alternatives first: it may settle the others.
	first := 0
	for i, u := range s.unions {
		if len(u.parts) < len(s.unions[first].parts) {
			first = i
		}
	}
	u := s.unions[first]
	rest := slices.Delete(slices.Clone(s.unions), first, first+1)
	for i, t := range u.parts {
		if !c.step(1, t.path) {
			return
		}
		one := s.clone()
		one.unions = slices.Clone(rest)
		if u.one {
			for _, o := range c.others(one, u.parts, i) {
				c.add(one, o)
			}
		}
		c.add(one, t)
		c.absorb(one)
		one.bare = false
		if c.err != nil || one.types != 0 && !use(one) {
			return
		}
	}
}

// others returns the negations of the alternatives that can hold together with the i-th one and s.
func (c *compiler) others(s *shape, parts []term, i int) (not []term) {
	for k, o := range parts {
		if k == i || c.err != nil || c.empty(conjunction{parts[i], o}, 0) {
			continue
		}
		if len(s.terms) == 0 {
			not = append(not, o.negated())
			continue
		}
		both := s.clone()
		both.terms = nil // the whole allows no value of both
		c.add(both, parts[i])
		c.add(both, o)
		if !c.contradicts(both, 0) {
			not = append(not, o.negated())
		}
	}
	return not
}

// expandExtra calls use with the ways to have a property that the schema of s.extras does not allow: one of the listed
// properties. Other names are left out: the result allows less.
func (c *compiler) expandExtra(s *shape, use func(*shape) bool) {
	c.narrowed = true
	rest, x := s.extras[1:], s.extras[0]
	names := s.members()
	for _, name := range names {
		for _, way := range x.ways(name) {
			one := s.clone()
			one.extras = rest
			one.require(name)
			one.objects = append(one.objects, objectPart{properties: map[string]term{name: way}, silent: true})
			if !use(one) {
				return
			}
		}
	}
}

// nameTexts returns the names that all terms allow.
func (c *compiler) nameTexts(all conjunction, path string) *dfa.DFA {
	s := c.shapeOf(all)
	s.types &= value.String
	d := c.textsOf(s, path, 0)
	if d == nil {
		d = dfa.Any()
	}
	return d
}

// textsOf returns the strings of a shape that may have unions; nil after an error.
func (c *compiler) textsOf(s *shape, path string, depth int) *dfa.DFA {
	none := func() *dfa.DFA { d, _ := dfa.Words(nil); return d }
	switch {
	case c.err != nil:
		return nil
	case s.types&value.String == 0:
		return none()
	case s.consts != nil:
		var words []string
		for _, v := range *s.consts {
			if v.Kind == value.String && c.holds(s, v) {
				words = append(words, v.Text)
			}
		}
		d, err := dfa.Words(words)
		c.failAt(path, err)
		return d
	case len(s.unions) == 0:
		return c.texts(s, path)
	case depth > 20:
		c.fail(expr.ErrLimit, path, "alternatives of property names nest more than 20 levels deep")
		return nil
	}
	// The alternatives of each union are one automaton: their combinations are never expanded.
	base := s.clone()
	base.unions = nil
	all := c.texts(base, path)
	for _, u := range s.unions {
		if c.err != nil || all.Empty() {
			break
		}
		union := none()
		for i, t := range u.parts {
			one := &shape{types: value.String}
			if u.one {
				for _, o := range c.others(&shape{types: value.AnyType}, u.parts, i) {
					c.add(one, o)
				}
			}
			c.add(one, t)
			one.types &= value.String
			d := c.textsOf(one, path, depth+1)
			if d == nil || c.err != nil {
				return nil
			}
			var err error
			union, err = dfa.Union(union, d)
			c.failAt(path, err)
		}
		if c.err == nil {
			var err error
			all, err = dfa.Intersect(all, union)
			c.failAt(path, err)
		}
	}
	return all
}
