package schema

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/format"
	"github.com/ingotml/ingot/grammar/number"
	"github.com/ingotml/ingot/grammar/value"
)

// A negated schema is the alternatives of its negated keywords: each is a term with only set.

// gatherNot merges a negated term.
func (c *compiler) gatherNot(s *shape, t term) {
	if t.only != "" {
		c.gatherNotKeyword(s, t)
		return
	}
	alone := t.in.Dialect.RefAlone() && t.schema.Get("$ref") != nil
	var parts []term
	for _, k := range t.schema.Keys {
		if !c.applies(t, k) || alone && k != "$ref" || merged[k] {
			continue
		}
		one := t
		one.only = k
		parts = append(parts, one)
	}
	switch len(parts) {
	case 0:
		s.types = 0 // the schema holds for everything
	case 1:
		c.gather(s, parts[0])
	default:
		s.unions = append(s.unions, union{parts: parts})
	}
}

// merged are the keywords that are negated with another one.
var merged = value.SetOf([]string{"then", "else", "minContains", "maxContains", "additionalItems", "nullable"})

// gatherNotKeyword merges the negation of one keyword: most hold for values of other types, so the type is known.
func (c *compiler) gatherNotKeyword(s *shape, t term) {
	k := t.only
	v := t.schema.Get(k)
	whole := t
	whole.only = ""
	ofType := func(types value.Types) { s.types &= types }
	positive := func(name string, build func() *value.Value) {
		at := whole.same(c.derive(v, "not\x00"+name, build), "/"+k)
		at.not = false
		c.gather(s, at)
	}
	count := func(types value.Types, set func(n int)) {
		if n, ok := c.count(v, t.path); ok {
			ofType(types)
			set(n)
		}
	}
	atMost := func(types value.Types, to **int) {
		count(types, func(n int) {
			if n--; n < 0 {
				s.types = 0
			} else if *to == nil || **to > n {
				*to = &n
			}
		})
	}
	atLeast := func(types value.Types, to *int) {
		count(types, func(n int) { *to = max(*to, n+1) })
	}
	switch k {
	case "type":
		types := c.typesOf(v, t)
		if types&value.AnyNumber == value.Integer && t.in.Dialect == document.Draft4 {
			types &^= value.Integer // 1.0 is no integer there, but is written as one
		}
		s.types &^= types
	case "const":
		c.bar(s, whole, v)
	case "enum":
		for _, item := range v.Items {
			c.bar(s, whole, item)
		}
	case "minLength":
		atMost(value.String, &s.strings.maxLength)
	case "maxLength":
		atLeast(value.String, &s.strings.minLength)
	case "minItems":
		atMost(value.Array, &s.maxItems)
	case "maxItems":
		atLeast(value.Array, &s.minItems)
	case "minProperties":
		atMost(value.Object, &s.maxMembers)
	case "maxProperties":
		atLeast(value.Object, &s.minMembers)
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		low := k == "minimum" || k == "exclusiveMinimum"
		b, ok := c.bound(v, t, low, k[0] == 'e')
		if !ok {
			s.types = 0
			return
		}
		ofType(value.AnyNumber)
		if b = (&number.Bound{Value: b.Value, Exclusive: !b.Exclusive}); low {
			s.numbers.AtMost(b)
		} else {
			s.numbers.AtLeast(b)
		}
	case "multipleOf":
		if r, ok := c.rational(v, t.path); ok {
			ofType(value.AnyNumber)
			s.numbers.NotMultiples = append(s.numbers.NotMultiples, r)
		}
	case "pattern":
		ofType(value.String)
		s.addPattern(textPattern{source: v.Text, negated: true})
	case "format":
		if format.Exact(v.Text) {
			ofType(value.String)
			s.addPattern(textPattern{source: v.Text, format: true, negated: true})
		} else {
			s.types = 0 // the grammar allows fewer texts than the format has, so it does not know the others
		}
	case "required":
		var parts []*value.Value
		for _, name := range c.stringList(v, k, t.path) {
			parts = append(parts, value.Schema("type", value.Text("object"), absentKeyword, value.Names(name)))
		}
		positive("", func() *value.Value { return value.Schema("anyOf", value.List(parts...)) })
	case absentKeyword:
		ofType(value.Object)
		for _, item := range v.Items { // there is one
			s.require(item.Text)
		}
	case "properties":
		positive("", func() *value.Value {
			var parts []*value.Value
			for i, name := range v.Keys {
				parts = append(parts, value.Schema("type", value.Text("object"), silentKeyword, v, "required", value.Names(name),
					"properties", value.Schema(name, value.Schema("not", v.Items[i]))))
			}
			return value.AnyOf(parts)
		})
	case "patternProperties", "additionalProperties", "propertyNames":
		c.gatherExtra(s, whole, k, v)
	case "items", "prefixItems":
		c.gatherNotItems(s, t, v)
	case "contains":
		c.gatherNotContains(s, whole, v)
	case "allOf":
		positive("", func() *value.Value {
			var parts []*value.Value
			for _, item := range v.Items {
				parts = append(parts, value.Schema("not", item))
			}
			return value.AnyOf(parts)
		})
	case "anyOf":
		for _, part := range c.list(whole, v, k) {
			c.gather(s, part)
		}
	case "oneOf":
		positive("", func() *value.Value { return notOneOf(v.Items) })
	case "not":
		at := whole.same(v, "/not")
		at.not = false
		c.gather(s, at)
	case "if":
		positive("", func() *value.Value {
			var parts []*value.Value
			for _, p := range c.conditions(v, whole) {
				parts = append(parts, value.Schema("not", p.schema))
			}
			return value.Schema("allOf", value.List(parts...))
		})
	case "dependentRequired", "dependentSchemas", "dependencies":
		positive("", func() *value.Value {
			var parts []*value.Value
			for i, name := range v.Keys {
				needs := v.Items[i]
				if needs.Kind == value.Array {
					needs = value.Schema("required", needs)
				}
				parts = append(parts, value.Schema("type", value.Text("object"), "required", value.Names(name), "not", needs))
			}
			return value.AnyOf(parts)
		})
	case "$ref", "$dynamicRef", "$recursiveRef":
		if to, ok := c.target(v.Text, whole); ok {
			c.gather(s, to)
		}
	default:
		c.unsupported(t.path, fmt.Sprintf("the keyword %s inside not or an overlapping oneOf", k))
	}
}

// notOneOf returns the schema of values that match none or at least two.
func notOneOf(schemas []*value.Value) *value.Value {
	var none, ways []*value.Value
	for i, a := range schemas {
		none = append(none, value.Schema("not", a))
		for _, b := range schemas[:i] {
			ways = append(ways, value.Schema("allOf", value.List(a, b)))
		}
	}
	return value.AnyOf(append(ways, value.Schema("allOf", value.List(none...))))
}

// gatherExtra merges the negation of patternProperties, additionalProperties or propertyNames: some property has a
// value or a name that does not match.
func (c *compiler) gatherExtra(s *shape, t term, keyword string, v *value.Value) {
	s.types &= value.Object
	at := t.sub(v, "/"+keyword)
	at.not = true
	patterns := c.patternParts(t, t.schema.Get("patternProperties"))
	switch keyword {
	case "additionalProperties":
		names := map[string]bool{}
		if properties := t.schema.Get("properties"); properties != nil {
			names = value.SetOf(properties.Keys)
		}
		s.extras = append(s.extras, extra{func(name string) []term {
			if names[name] || slices.ContainsFunc(patterns, func(p patternPart) bool { return p.dfa.Match(name) }) {
				return nil
			}
			return []term{at}
		}})
	case "patternProperties":
		s.extras = append(s.extras, extra{func(name string) (ways []term) {
			for _, p := range patterns {
				if p.dfa.Match(name) {
					ways = append(ways, p.term.negated())
				}
			}
			return ways
		}})
	case "propertyNames":
		at.not = false
		allowed := c.nameTexts(conjunction{at}, t.path)
		if c.err != nil || allowed.Short() {
			c.fail(expr.ErrLimit, t.path, "the keyword propertyNames inside not, with a pattern of too many states")
			return
		}
		anything := t.sub(c.derive(v, "anything", func() *value.Value { return value.Schema() }), "")
		s.extras = append(s.extras, extra{func(name string) []term {
			if allowed.Match(name) {
				return nil
			}
			return []term{anything}
		}})
	}
}

// gatherNotItems merges the negation of items: some item does not match.
func (c *compiler) gatherNotItems(s *shape, t term, v *value.Value) {
	s.types &= value.Array
	not := func(schema *value.Value) *value.Value { return value.Schema("not", schema) }
	at := t
	at.not = false
	if v.Kind == value.Array { // one of the first items does not match
		c.gather(s, at.same(c.derive(v, "not prefix", func() *value.Value {
			var parts []*value.Value
			for i, item := range v.Items {
				prefix := make([]*value.Value, i+1)
				for k := range prefix {
					prefix[k] = value.Schema()
				}
				prefix[i] = not(item)
				least := &value.Value{Kind: value.AnyNumber, Text: strconv.Itoa(i + 1)}
				parts = append(parts, value.Schema("minItems", least, t.only, value.List(prefix...)))
			}
			return value.AnyOf(parts)
		}), "/"+t.only))
		return
	}
	if t.schema.Get("prefixItems") != nil && t.in.Dialect.Has("prefixItems") {
		c.unsupported(t.path, "the keyword items after prefixItems inside not or an overlapping oneOf")
		return
	}
	schema := c.derive(v, "some", func() *value.Value { return not(v) })
	s.contains = append(s.contains, containsPart{term: at.sub(schema, "/items"), least: 1, most: -1})
}

func (c *compiler) gatherNotContains(s *shape, t term, v *value.Value) {
	s.types &= value.Array
	var positive shape
	at := t
	at.not = false
	c.gatherContains(&positive, v, at)
	part := positive.contains[0]
	if part.most >= 0 && part.least > 0 {
		c.unsupported(t.path, "the keyword maxContains inside not or an overlapping oneOf")
		return
	}
	if part.most >= 0 {
		part.least, part.most = part.most+1, -1
	} else if part.least == 0 {
		s.types = 0
		return
	} else {
		part.least, part.most = 0, part.least-1
	}
	s.contains = append(s.contains, part)
}
