package schema

import (
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/format"
	"github.com/ingotml/ingot/grammar/value"
)

func init() {
	type fold = func(c *compiler, s *shape, v *value.Value, t term)
	count := func(set func(s *shape, n int)) fold {
		return func(c *compiler, s *shape, v *value.Value, t term) {
			if n, ok := c.count(v, t.path); ok {
				set(s, n)
			}
		}
	}
	atMost := func(to **int, n int) {
		if *to == nil || **to > n {
			*to = &n
		}
	}
	elsewhere := func(*compiler, *shape, *value.Value, term) {} // merged with a keyword that it belongs to
	limit := func(low, boolean bool) fold {
		return func(c *compiler, s *shape, v *value.Value, t term) {
			b, ok := c.bound(v, t, low, boolean)
			switch {
			case !ok:
			case low:
				s.numbers.AtLeast(b)
			default:
				s.numbers.AtMost(b)
			}
		}
	}
	keywords = map[string]fold{
		"type":          func(c *compiler, s *shape, v *value.Value, t term) { s.types &= c.typesOf(v, t) },
		"nullable":      elsewhere,
		"const":         func(_ *compiler, s *shape, v *value.Value, _ term) { s.only([]*value.Value{v}) },
		"minLength":     count(func(s *shape, n int) { s.strings.minLength = max(s.strings.minLength, n) }),
		"maxLength":     count(func(s *shape, n int) { atMost(&s.strings.maxLength, n) }),
		"minItems":      count(func(s *shape, n int) { s.minItems = max(s.minItems, n) }),
		"maxItems":      count(func(s *shape, n int) { atMost(&s.maxItems, n) }),
		"minProperties": count(func(s *shape, n int) { s.minMembers = max(s.minMembers, n) }),
		"maxProperties": count(func(s *shape, n int) { atMost(&s.maxMembers, n) }),
		"minimum":       limit(true, false), "exclusiveMinimum": limit(true, true),
		"maximum": limit(false, false), "exclusiveMaximum": limit(false, true),
		"properties": elsewhere, "patternProperties": elsewhere, "additionalProperties": elsewhere,
		"prefixItems": elsewhere, "items": elsewhere, "additionalItems": elsewhere,
		"minContains": elsewhere, "maxContains": elsewhere, "then": elsewhere, "else": elsewhere,
		"unevaluatedProperties": elsewhere, "unevaluatedItems": elsewhere,
		"enum": func(c *compiler, s *shape, v *value.Value, t term) {
			if v.Kind != value.Array {
				c.fail(expr.ErrInvalid, t.path, "enum must be an array")
				return
			}
			s.only(v.Items)
		},
		"pattern": func(c *compiler, s *shape, v *value.Value, t term) {
			if c.isString(v, "pattern", t.path) {
				s.addPattern(textPattern{source: v.Text})
			}
		},
		"format": func(c *compiler, s *shape, v *value.Value, t term) {
			if c.isString(v, "format", t.path) && format.Known(v.Text) {
				s.addPattern(textPattern{source: v.Text, format: true})
			}
		},
		"multipleOf": func(c *compiler, s *shape, v *value.Value, t term) {
			if r, ok := c.rational(v, t.path); ok {
				if r.Sign() <= 0 {
					c.fail(expr.ErrInvalid, t.path, "multipleOf must be above 0")
					return
				}
				s.numbers.Multiples = append(s.numbers.Multiples, r)
			}
		},
		"required": func(c *compiler, s *shape, v *value.Value, t term) {
			if v.Kind == value.Boolean { // draft 3; some tools still write it inside properties
				c.fail(expr.ErrUnsupported, t.path, "required as a boolean; list the names next to properties")
				return
			}
			had := value.SetOf(s.required)
			for _, name := range c.stringList(v, "required", t.path) {
				if !had[name] {
					had[name] = true
					s.required = append(s.required, name)
				}
			}
		},
		absentKeyword: func(c *compiler, s *shape, v *value.Value, t term) {
			s.absent = append(s.absent, c.stringList(v, "required", t.path)...)
		},
		"propertyNames": func(_ *compiler, s *shape, v *value.Value, t term) {
			s.names = append(s.names, t.sub(v, "/propertyNames"))
		},
		"uniqueItems": func(c *compiler, s *shape, v *value.Value, t term) { s.unique = s.unique || v.Truth },
		"contains":    func(c *compiler, s *shape, v *value.Value, t term) { c.gatherContains(s, v, t) },
		"allOf": func(c *compiler, s *shape, v *value.Value, t term) {
			for _, part := range c.list(t, v, "allOf") {
				c.gather(s, part)
			}
		},
		"anyOf": func(c *compiler, s *shape, v *value.Value, t term) {
			s.unions = append(s.unions, union{parts: c.list(t, v, "anyOf")})
		},
		"oneOf": func(c *compiler, s *shape, v *value.Value, t term) {
			s.unions = append(s.unions, union{parts: c.list(t, v, "oneOf"), one: true})
		},
		"not": func(c *compiler, s *shape, v *value.Value, t term) { c.gather(s, t.same(v, "/not").negated()) },
		"if": func(c *compiler, s *shape, v *value.Value, t term) {
			s.unions = append(s.unions, union{parts: c.conditions(v, t)})
		},
		"dependentRequired": (*compiler).gatherDependencies, "dependentSchemas": (*compiler).gatherDependencies,
		"dependencies": (*compiler).gatherDependencies,
		"$ref":         (*compiler).gatherReference, "$dynamicRef": (*compiler).gatherReference,
		"$recursiveRef": (*compiler).gatherReference,
	}
}

// gatherReference merges the target of a reference.
func (c *compiler) gatherReference(s *shape, v *value.Value, t term) {
	if !c.isString(v, "$ref", t.path) {
		return
	}
	to, ok := c.target(v.Text, t)
	switch {
	case !ok:
	case s.bare: // an alternative of its own, because its target may be under compilation
		s.unions = append(s.unions, union{parts: []term{to}})
	default:
		c.gather(s, to)
	}
}
