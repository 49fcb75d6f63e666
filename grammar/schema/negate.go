package schema

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/format"
	"github.com/ingotml/ingot/grammar/number"
)

// A negated schema is the alternatives of its negated keywords: each is a term with only set.

// gatherNot merges a negated term.
func (c *compiler) gatherNot(s *shape, t term) {
	if t.only != "" {
		c.gatherNotKeyword(s, t)
		return
	}
	alone := t.in.dialect.refAlone() && t.schema.get("$ref") != nil
	var parts []term
	for _, k := range t.schema.keys {
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
var merged = setOf([]string{"then", "else", "minContains", "maxContains", "additionalItems", "nullable"})

// gatherNotKeyword merges the negation of one keyword: most hold for values of other types, so the type is known.
func (c *compiler) gatherNotKeyword(s *shape, t term) {
	k := t.only
	v := t.schema.get(k)
	whole := t
	whole.only = ""
	ofType := func(types typeSet) { s.types &= types }
	positive := func(name string, build func() *value) {
		at := whole.same(c.derive(v, "not\x00"+name, build), "/"+k)
		at.not = false
		c.gather(s, at)
	}
	count := func(types typeSet, set func(n int)) {
		if n, ok := c.count(v, t.path); ok {
			ofType(types)
			set(n)
		}
	}
	atMost := func(types typeSet, to **int) {
		count(types, func(n int) {
			if n--; n < 0 {
				s.types = 0
			} else if *to == nil || **to > n {
				*to = &n
			}
		})
	}
	atLeast := func(types typeSet, to *int) {
		count(types, func(n int) { *to = max(*to, n+1) })
	}
	switch k {
	case "type":
		types := c.typesOf(v, t)
		if types&anyNumber == typeInteger && t.in.dialect == draft4 {
			types &^= typeInteger // 1.0 is no integer there, but is written as one
		}
		s.types &^= types
	case "const":
		c.bar(s, whole, v)
	case "enum":
		for _, item := range v.items {
			c.bar(s, whole, item)
		}
	case "minLength":
		atMost(typeString, &s.strings.maxLength)
	case "maxLength":
		atLeast(typeString, &s.strings.minLength)
	case "minItems":
		atMost(typeArray, &s.maxItems)
	case "maxItems":
		atLeast(typeArray, &s.minItems)
	case "minProperties":
		atMost(typeObject, &s.maxMembers)
	case "maxProperties":
		atLeast(typeObject, &s.minMembers)
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		low := k == "minimum" || k == "exclusiveMinimum"
		b, ok := c.bound(v, t, low, k[0] == 'e')
		if !ok {
			s.types = 0
			return
		}
		ofType(anyNumber)
		if b = (&number.Bound{Value: b.Value, Exclusive: !b.Exclusive}); low {
			s.numbers.AtMost(b)
		} else {
			s.numbers.AtLeast(b)
		}
	case "multipleOf":
		if r, ok := c.rational(v, t.path); ok {
			ofType(anyNumber)
			s.numbers.NotMultiples = append(s.numbers.NotMultiples, r)
		}
	case "pattern":
		ofType(typeString)
		s.addPattern(textPattern{source: v.text, negated: true})
	case "format":
		if format.Exact(v.text) {
			ofType(typeString)
			s.addPattern(textPattern{source: v.text, format: true, negated: true})
		} else {
			s.types = 0 // the grammar allows fewer texts than the format has, so it does not know the others
		}
	case "required":
		var parts []*value
		for _, name := range c.stringList(v, k, t.path) {
			parts = append(parts, objectValue("type", textValue("object"), absentKeyword, namesValue(name)))
		}
		positive("", func() *value { return objectValue("anyOf", listValue(parts...)) })
	case absentKeyword:
		ofType(typeObject)
		for _, item := range v.items { // there is one
			s.require(item.text)
		}
	case "properties":
		positive("", func() *value {
			var parts []*value
			for i, name := range v.keys {
				parts = append(parts, objectValue("type", textValue("object"), silentKeyword, v, "required", namesValue(name),
					"properties", objectValue(name, objectValue("not", v.items[i]))))
			}
			return anyOf(parts)
		})
	case "patternProperties", "additionalProperties", "propertyNames":
		c.gatherExtra(s, whole, k, v)
	case "items", "prefixItems":
		c.gatherNotItems(s, t, v)
	case "contains":
		c.gatherNotContains(s, whole, v)
	case "allOf":
		positive("", func() *value {
			var parts []*value
			for _, item := range v.items {
				parts = append(parts, objectValue("not", item))
			}
			return anyOf(parts)
		})
	case "anyOf":
		for _, part := range c.list(whole, v, k) {
			c.gather(s, part)
		}
	case "oneOf":
		positive("", func() *value { return notOneOf(v.items) })
	case "not":
		at := whole.same(v, "/not")
		at.not = false
		c.gather(s, at)
	case "if":
		positive("", func() *value {
			var parts []*value
			for _, p := range c.conditions(v, whole) {
				parts = append(parts, objectValue("not", p.schema))
			}
			return objectValue("allOf", listValue(parts...))
		})
	case "dependentRequired", "dependentSchemas", "dependencies":
		positive("", func() *value {
			var parts []*value
			for i, name := range v.keys {
				needs := v.items[i]
				if needs.kind == typeArray {
					needs = objectValue("required", needs)
				}
				parts = append(parts, objectValue("type", textValue("object"), "required", namesValue(name), "not", needs))
			}
			return anyOf(parts)
		})
	case "$ref", "$dynamicRef", "$recursiveRef":
		if to, ok := c.target(v.text, whole); ok {
			c.gather(s, to)
		}
	default:
		c.unsupported(t.path, fmt.Sprintf("the keyword %s inside not or an overlapping oneOf", k))
	}
}

// anyOf returns the schema of any of the parts; without parts it holds for nothing.
func anyOf(parts []*value) *value {
	if len(parts) == 0 {
		return &value{kind: typeBoolean}
	}
	return objectValue("anyOf", listValue(parts...))
}

// notOneOf returns the schema of values that match none or at least two.
func notOneOf(schemas []*value) *value {
	var none, ways []*value
	for i, a := range schemas {
		none = append(none, objectValue("not", a))
		for _, b := range schemas[:i] {
			ways = append(ways, objectValue("allOf", listValue(a, b)))
		}
	}
	return anyOf(append(ways, objectValue("allOf", listValue(none...))))
}

// gatherExtra merges the negation of patternProperties, additionalProperties or propertyNames: some property has a
// value or a name that does not match.
func (c *compiler) gatherExtra(s *shape, t term, keyword string, v *value) {
	s.types &= typeObject
	at := t.sub(v, "/"+keyword)
	at.not = true
	patterns := c.patternParts(t, t.schema.get("patternProperties"))
	switch keyword {
	case "additionalProperties":
		names := map[string]bool{}
		if properties := t.schema.get("properties"); properties != nil {
			names = setOf(properties.keys)
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
		anything := t.sub(c.derive(v, "anything", func() *value { return objectValue() }), "")
		s.extras = append(s.extras, extra{func(name string) []term {
			if allowed.Match(name) {
				return nil
			}
			return []term{anything}
		}})
	}
}

// gatherNotItems merges the negation of items: some item does not match.
func (c *compiler) gatherNotItems(s *shape, t term, v *value) {
	s.types &= typeArray
	not := func(schema *value) *value { return objectValue("not", schema) }
	at := t
	at.not = false
	if v.kind == typeArray { // one of the first items does not match
		c.gather(s, at.same(c.derive(v, "not prefix", func() *value {
			var parts []*value
			for i, item := range v.items {
				prefix := make([]*value, i+1)
				for k := range prefix {
					prefix[k] = objectValue()
				}
				prefix[i] = not(item)
				least := &value{kind: anyNumber, text: strconv.Itoa(i + 1)}
				parts = append(parts, objectValue("minItems", least, t.only, listValue(prefix...)))
			}
			return anyOf(parts)
		}), "/"+t.only))
		return
	}
	if t.schema.get("prefixItems") != nil && t.in.dialect.has("prefixItems") {
		c.unsupported(t.path, "the keyword items after prefixItems inside not or an overlapping oneOf")
		return
	}
	schema := c.derive(v, "some", func() *value { return not(v) })
	s.contains = append(s.contains, containsPart{term: at.sub(schema, "/items"), least: 1, most: -1})
}

func (c *compiler) gatherNotContains(s *shape, t term, v *value) {
	s.types &= typeArray
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
