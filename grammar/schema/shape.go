package schema

import (
	"math/big"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
)

// shape is the merged constraints of several schemas on a value.
type shape struct {
	types  typeSet
	bare   bool // a single union and no other constraint
	consts *[]*value
	unions [][]located // one alternative of each must hold

	low, high  *bound
	multiples  []*big.Rat
	minLength  int
	maxLength  *int
	patterns   []string
	formats    []string
	objects    []objectPart
	required   []string
	minMembers int
	maxMembers *int
	closed     bool      // unevaluatedProperties is false
	names      []located // propertyNames
	arrays     []arrayPart
	minItems   int
	maxItems   *int
	closedList bool // unevaluatedItems is false
}

// objectPart is one schema's properties and its constraint on all others.
type objectPart struct {
	names      []string
	properties map[string]located
	others     *located // nil: no constraint
}

// arrayPart is one schema's first items and its constraint on all others.
type arrayPart struct {
	prefix []located
	others *located
}

func (s *shape) clone() *shape {
	c := *s
	c.bare = false
	c.multiples = slices.Clip(s.multiples)
	c.patterns, c.formats = slices.Clip(s.patterns), slices.Clip(s.formats)
	c.objects, c.arrays, c.names = slices.Clip(s.objects), slices.Clip(s.arrays), slices.Clip(s.names)
	c.required = slices.Clip(s.required)
	return &c
}

// free reports whether s has no constraint but the types.
func (s *shape) free() bool {
	return s.consts == nil && len(s.unions) == 0 &&
		s.low == nil && s.high == nil && len(s.multiples) == 0 && s.minLength == 0 && s.maxLength == nil &&
		len(s.patterns)+len(s.formats)+len(s.objects)+len(s.required)+len(s.arrays)+len(s.names) == 0 &&
		s.minMembers == 0 && s.maxMembers == nil && !s.closed &&
		s.minItems == 0 && s.maxItems == nil && !s.closedList
}

// annotations are the keywords that do not constrain values. Definitions are compiled when something refers to them.
var annotations = map[string]bool{"title": true, "description": true, "default": true, "examples": true,
	"example": true, "$comment": true,
	"$schema": true, "$id": true, "$anchor": true, "$defs": true, "definitions": true, "$vocabulary": true,
	"deprecated": true,
	"readOnly":   true, "writeOnly": true, "contentEncoding": true, "contentMediaType": true, "contentSchema": true,
	"discriminator": true,
	"externalDocs":  true, "xml": true, "id": true}

// keywords merge a keyword's value into a shape.
var keywords map[string]func(c *compiler, s *shape, v *value, at located, refs []*value)

func init() {
	type fold = func(c *compiler, s *shape, v *value, at located, refs []*value)
	count := func(set func(s *shape, n int)) fold {
		return func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if n, ok := c.count(v, at.path); ok {
				set(s, n)
			}
		}
	}
	atMost := func(to **int, n int) {
		if *to == nil || **to > n {
			*to = &n
		}
	}
	keywords = map[string]fold{
		"type": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			types := c.types(v, at.path)
			if n := at.schema.get("nullable"); n != nil && n.truth { // OpenAPI 3.0
				types |= typeNull
			}
			s.types &= types
		},
		"enum": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if v.kind != typeArray {
				c.fail(expr.ErrInvalid, at.path, "enum must be an array")
				return
			}
			s.only(v.items)
		},
		"const":         func(_ *compiler, s *shape, v *value, _ located, _ []*value) { s.only([]*value{v}) },
		"nullable":      func(*compiler, *shape, *value, located, []*value) {}, // handled by type
		"minLength":     count(func(s *shape, n int) { s.minLength = max(s.minLength, n) }),
		"maxLength":     count(func(s *shape, n int) { atMost(&s.maxLength, n) }),
		"minItems":      count(func(s *shape, n int) { s.minItems = max(s.minItems, n) }),
		"maxItems":      count(func(s *shape, n int) { atMost(&s.maxItems, n) }),
		"minProperties": count(func(s *shape, n int) { s.minMembers = max(s.minMembers, n) }),
		"maxProperties": count(func(s *shape, n int) { atMost(&s.maxMembers, n) }),
		"pattern": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if c.isString(v, "pattern", at.path) && !slices.Contains(s.patterns, v.text) {
				s.patterns = append(s.patterns, v.text)
			}
		},
		"format": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if c.isString(v, "format", at.path) && !slices.Contains(s.formats, v.text) {
				s.formats = append(s.formats, v.text)
			}
		},
		"multipleOf": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if r, ok := c.rational(v, at.path); ok {
				if r.Sign() <= 0 {
					c.fail(expr.ErrInvalid, at.path, "multipleOf must be above 0")
				}
				s.multiples = append(s.multiples, r)
			}
		},
		"minimum": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if r, ok := c.rational(v, at.path); ok {
				// Draft 4 has a boolean exclusiveMinimum next to minimum.
				e := at.schema.get("exclusiveMinimum")
				s.atLeast(&bound{r, e != nil && e.kind == typeBoolean && e.truth})
			}
		},
		"maximum": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if r, ok := c.rational(v, at.path); ok {
				e := at.schema.get("exclusiveMaximum")
				s.atMost(&bound{r, e != nil && e.kind == typeBoolean && e.truth})
			}
		},
		"exclusiveMinimum": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if v.kind == typeBoolean {
				return
			}
			if r, ok := c.rational(v, at.path); ok {
				s.atLeast(&bound{r, true})
			}
		},
		"exclusiveMaximum": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if v.kind == typeBoolean {
				return
			}
			if r, ok := c.rational(v, at.path); ok {
				s.atMost(&bound{r, true})
			}
		},
		"required": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if v.kind == typeBoolean { // draft 3; some tools still write it inside properties
				c.fail(expr.ErrUnsupported, at.path, "required as a boolean; list the names next to properties")
				return
			}
			had := setOf(s.required)
			for _, name := range v.items {
				if c.isString(name, "required", at.path) && !had[name.text] {
					had[name.text] = true
					s.required = append(s.required, name.text)
				}
			}
		},
		// handled by gatherParts, as are the next four
		"properties":           func(*compiler, *shape, *value, located, []*value) {},
		"additionalProperties": func(*compiler, *shape, *value, located, []*value) {},
		"prefixItems":          func(*compiler, *shape, *value, located, []*value) {},
		"items":                func(*compiler, *shape, *value, located, []*value) {},
		"additionalItems":      func(*compiler, *shape, *value, located, []*value) {},
		"propertyNames": func(_ *compiler, s *shape, v *value, at located, _ []*value) {
			s.names = append(s.names, located{v, at.path + "/propertyNames"})
		},
		"unevaluatedProperties": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			s.closed = s.closed || c.onlyFalse(v, "unevaluatedProperties", at.path)
		},
		"unevaluatedItems": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			s.closedList = s.closedList || c.onlyFalse(v, "unevaluatedItems", at.path)
		},
		"uniqueItems": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			if v.kind == typeBoolean && !v.truth {
				return
			}
			if most := at.schema.get("maxItems"); most != nil {
				if n, ok := c.count(most, at.path); ok && n <= 1 {
					return
				}
			}
			c.fail(expr.ErrUnsupported, at.path, "the keyword uniqueItems")
		},
		"allOf": func(c *compiler, s *shape, v *value, at located, refs []*value) {
			for _, part := range c.list(v, "allOf", at.path) {
				c.gather(s, part, refs)
			}
		},
		"anyOf": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			s.unions = append(s.unions, c.list(v, "anyOf", at.path))
		},
		"oneOf": func(c *compiler, s *shape, v *value, at located, _ []*value) {
			parts := c.list(v, "oneOf", at.path)
			c.checkDisjoint(parts, at.path)
			s.unions = append(s.unions, parts)
		},
		"$ref": func(c *compiler, s *shape, v *value, at located, refs []*value) {
			if !c.isString(v, "$ref", at.path) {
				return
			}
			to, ok := c.resolve(v.text, at.path)
			if !ok {
				return
			}
			if slices.Contains(refs, to.schema) {
				c.fail(expr.ErrInvalid, at.path, "$ref %q is circular", v.text)
				return
			}
			// A reference without other keywords is an alternative of its own, because its target may be under compilation.
			if s.bare {
				s.unions = append(s.unions, []located{to})
				return
			}
			c.gather(s, to, append(slices.Clip(refs), to.schema))
		},
	}
}

// gather merges a schema into s. refs are the targets of the references that led here.
func (c *compiler) gather(s *shape, at located, refs []*value) {
	if !c.step(1, at.path) {
		return
	}
	switch v := at.schema; v.kind {
	case typeBoolean:
		if !v.truth {
			s.types = 0
		}
		return
	case typeObject:
	default:
		c.fail(expr.ErrInvalid, at.path, "a schema must be an object or a boolean")
		return
	}
	constraints := 0
	for _, k := range at.schema.keys {
		if !annotations[k] {
			constraints++
		}
	}
	// bare describes this schema alone: schemas gathered before or after it do not count.
	first := s.types == anyType && s.free()
	s.bare = first && constraints == 1 &&
		(at.schema.get("$ref") != nil || at.schema.get("anyOf") != nil || at.schema.get("oneOf") != nil)
	bare := s.bare
	for i, k := range at.schema.keys {
		fold := keywords[k]
		switch {
		case fold != nil:
			if fold(c, s, at.schema.items[i], at, refs); c.err != nil {
				return
			}
		case annotations[k] || len(k) > 1 && k[:2] == "x-":
		default:
			c.fail(expr.ErrUnsupported, at.path, "the keyword %s", k)
			return
		}
	}
	s.bare = bare
	c.gatherParts(s, at)
}

// gatherParts merges the keywords that depend on each other.
func (c *compiler) gatherParts(s *shape, at located) {
	v := at.schema
	if properties, others := v.get("properties"), v.get("additionalProperties"); properties != nil || others != nil {
		part := objectPart{properties: map[string]located{}}
		if properties != nil {
			if properties.kind != typeObject {
				c.fail(expr.ErrInvalid, at.path, "properties must be an object")
				return
			}
			part.names = properties.keys
			for i, name := range properties.keys {
				part.properties[name] = located{properties.items[i], at.path + "/properties/" + pointerPart(name)}
			}
		}
		if others != nil {
			part.others = &located{others, at.path + "/additionalProperties"}
		}
		s.objects = append(s.objects, part)
	}
	prefix, items, more := v.get("prefixItems"), v.get("items"), v.get("additionalItems")
	if items != nil && items.kind == typeArray { // before 2020-12
		if prefix != nil {
			c.fail(expr.ErrInvalid, at.path, "items as an array together with prefixItems")
			return
		}
		prefix, items = items, more
	} else if more != nil && prefix == nil {
		more = nil // has no effect without a list of items
	}
	if prefix != nil || items != nil {
		var part arrayPart
		if prefix != nil {
			part.prefix = c.list(prefix, "prefixItems", at.path)
		}
		if items != nil {
			part.others = &located{items, at.path + "/items"}
		}
		s.arrays = append(s.arrays, part)
	}
}

// only restricts the constants of s to values.
func (s *shape) only(values []*value) {
	kept := values
	if s.consts != nil {
		kept = nil
		had := newConstants(*s.consts)
		for _, v := range values {
			if had.has(v) {
				kept = append(kept, v)
			}
		}
	}
	s.consts = &kept
}

func (s *shape) atLeast(b *bound) {
	if s.low == nil || b.value.Cmp(s.low.value) > 0 || b.exclusive && b.value.Cmp(s.low.value) == 0 {
		s.low = b
	}
}

func (s *shape) atMost(b *bound) {
	if s.high == nil || b.value.Cmp(s.high.value) < 0 || b.exclusive && b.value.Cmp(s.high.value) == 0 {
		s.high = b
	}
}
