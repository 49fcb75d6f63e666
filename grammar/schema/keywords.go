package schema

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/format"
	"github.com/ingotml/ingot/grammar/number"
)

// keywords merge a keyword's value into a shape.
var keywords map[string]func(c *compiler, s *shape, v *value, t term)

func init() {
	type fold = func(c *compiler, s *shape, v *value, t term)
	count := func(set func(s *shape, n int)) fold {
		return func(c *compiler, s *shape, v *value, t term) {
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
	elsewhere := func(*compiler, *shape, *value, term) {} // merged with a keyword that it belongs to
	limit := func(low, boolean bool) fold {
		return func(c *compiler, s *shape, v *value, t term) {
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
		"type":          func(c *compiler, s *shape, v *value, t term) { s.types &= c.typesOf(v, t) },
		"nullable":      elsewhere,
		"const":         func(_ *compiler, s *shape, v *value, _ term) { s.only([]*value{v}) },
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
		"enum": func(c *compiler, s *shape, v *value, t term) {
			if v.kind != typeArray {
				c.fail(expr.ErrInvalid, t.path, "enum must be an array")
				return
			}
			s.only(v.items)
		},
		"pattern": func(c *compiler, s *shape, v *value, t term) {
			if c.isString(v, "pattern", t.path) {
				s.addPattern(textPattern{source: v.text})
			}
		},
		"format": func(c *compiler, s *shape, v *value, t term) {
			if c.isString(v, "format", t.path) && format.Known(v.text) {
				s.addPattern(textPattern{source: v.text, format: true})
			}
		},
		"multipleOf": func(c *compiler, s *shape, v *value, t term) {
			if r, ok := c.rational(v, t.path); ok {
				if r.Sign() <= 0 {
					c.fail(expr.ErrInvalid, t.path, "multipleOf must be above 0")
					return
				}
				s.numbers.Multiples = append(s.numbers.Multiples, r)
			}
		},
		"required": func(c *compiler, s *shape, v *value, t term) {
			if v.kind == typeBoolean { // draft 3; some tools still write it inside properties
				c.fail(expr.ErrUnsupported, t.path, "required as a boolean; list the names next to properties")
				return
			}
			had := setOf(s.required)
			for _, name := range c.stringList(v, "required", t.path) {
				if !had[name] {
					had[name] = true
					s.required = append(s.required, name)
				}
			}
		},
		absentKeyword: func(c *compiler, s *shape, v *value, t term) {
			s.absent = append(s.absent, c.stringList(v, "required", t.path)...)
		},
		"propertyNames": func(_ *compiler, s *shape, v *value, t term) {
			s.names = append(s.names, t.sub(v, "/propertyNames"))
		},
		"uniqueItems": func(c *compiler, s *shape, v *value, t term) { s.unique = s.unique || v.truth },
		"contains":    func(c *compiler, s *shape, v *value, t term) { c.gatherContains(s, v, t) },
		"allOf": func(c *compiler, s *shape, v *value, t term) {
			for _, part := range c.list(t, v, "allOf") {
				c.gather(s, part)
			}
		},
		"anyOf": func(c *compiler, s *shape, v *value, t term) {
			s.unions = append(s.unions, union{parts: c.list(t, v, "anyOf")})
		},
		"oneOf": func(c *compiler, s *shape, v *value, t term) {
			s.unions = append(s.unions, union{parts: c.list(t, v, "oneOf"), one: true})
		},
		"not": func(c *compiler, s *shape, v *value, t term) { c.gather(s, t.same(v, "/not").negated()) },
		"if": func(c *compiler, s *shape, v *value, t term) {
			s.unions = append(s.unions, union{parts: c.conditions(v, t)})
		},
		"dependentRequired": (*compiler).gatherDependencies, "dependentSchemas": (*compiler).gatherDependencies,
		"dependencies": (*compiler).gatherDependencies,
		"$ref":         (*compiler).gatherReference, "$dynamicRef": (*compiler).gatherReference,
		"$recursiveRef": (*compiler).gatherReference,
	}
}

// absentKeyword is a keyword that sources cannot have: an object has none of these properties.
const absentKeyword = "\x00absent"

// typesOf returns the types that a schema's type allows.
func (c *compiler) typesOf(v *value, t term) typeSet {
	types := c.types(v, t.path)
	if n := t.schema.get("nullable"); n != nil && n.truth && t.in.dialect.has("nullable") {
		types |= typeNull
	}
	return types
}

// bound returns the limit of a keyword. Draft 4 has a boolean exclusiveMinimum next to minimum; exclusive: the keyword
// is the exclusive one.
func (c *compiler) bound(v *value, t term, low, exclusive bool) (*number.Bound, bool) {
	if exclusive && v.kind == typeBoolean {
		return nil, false
	}
	r, ok := c.rational(v, t.path)
	if !ok {
		return nil, false
	}
	if !exclusive {
		name := "exclusiveMaximum"
		if low {
			name = "exclusiveMinimum"
		}
		e := t.schema.get(name)
		exclusive = e != nil && e.kind == typeBoolean && e.truth
	}
	return &number.Bound{Value: r, Exclusive: exclusive}, true
}

func (s *shape) addPattern(p textPattern) {
	if !slices.Contains(s.strings.patterns, p) {
		s.strings.patterns = append(s.strings.patterns, p)
	}
}

// applies reports whether a keyword of a schema constrains values.
func (c *compiler) applies(t term, keyword string) bool {
	return !annotations[keyword] && keywords[keyword] != nil && t.in.dialect.has(keyword)
}

// isUnion are the keywords that are alternatives and nothing else.
var isUnion = setOf([]string{"$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf"})

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
	t.in = c.doc.resourceOf(t.schema, t.in)
	t.outer = c.enter(t.outer, t.in)
	s.held = append(s.held, t.held())
	switch v := t.schema; v.kind {
	case typeBoolean:
		if v.truth == t.not {
			s.types = 0
		}
		return
	case typeObject:
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
	alone := t.in.dialect.refAlone() && t.schema.get("$ref") != nil
	constraints, onlyUnion := 0, true
	for _, k := range t.schema.keys {
		if c.applies(t, k) && (!alone || k == "$ref") {
			constraints++
			onlyUnion = onlyUnion && isUnion[k]
		} else if !annotations[k] && keywords[k] == nil && c.strict && !strings.HasPrefix(k, "x-") {
			c.fail(expr.ErrUnsupported, t.path, "the keyword %s is not one of the specification", k)
			return
		}
	}
	// bare describes this schema alone: schemas gathered before or after it do not count.
	bare := s.types == anyType && s.free() && t.scope == nil && constraints == 1 && onlyUnion
	s.bare = bare
	if !alone {
		t = c.openScope(s, t)
	}
	for i, k := range t.schema.keys {
		if !c.applies(t, k) || alone && k != "$ref" {
			continue
		}
		if keywords[k](c, s, t.schema.items[i], t); c.err != nil {
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
	properties, items := t.schema.get("unevaluatedProperties"), t.schema.get("unevaluatedItems")
	if properties == nil && items == nil || !t.in.dialect.has("unevaluatedProperties") {
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

// gatherParts merges the keywords that depend on each other.
func (c *compiler) gatherParts(s *shape, t term) {
	v := t.schema
	properties, patterns, others := v.get("properties"), v.get("patternProperties"), v.get("additionalProperties")
	if properties != nil || patterns != nil || others != nil {
		part := c.objectPartOf(t, properties, patterns, others)
		if c.err != nil {
			return
		}
		part.scope = t.scope
		s.objects = append(s.objects, part)
	}
	if part, ok := c.itemsOf(t); ok {
		s.arrays = append(s.arrays, part)
	}
}

// partKey identifies what a schema says about properties.
type partKey struct {
	schema *value
	in     *resource
	outer  string
}

// objectPartOf returns what a schema says about properties, which is made once.
func (c *compiler) objectPartOf(t term, properties, patterns, others *value) objectPart {
	key := partKey{t.schema, t.in, t.outer}
	if part, ok := c.parts[key]; ok {
		return part
	}
	part := objectPart{properties: map[string]term{}, silent: t.schema.get(silentKeyword) != nil}
	if properties != nil {
		if properties.kind != typeObject {
			c.fail(expr.ErrInvalid, t.path, "properties must be an object")
			return part
		}
		part.names = properties.keys
		for i, name := range properties.keys {
			part.properties[name] = t.sub(properties.items[i], "/properties/"+pointerPart(name))
		}
	}
	part.patterns = c.patternParts(t, patterns)
	if others != nil {
		at := t.sub(others, "/additionalProperties")
		part.others = &at
	}
	if c.err == nil {
		c.parts[key] = part
	}
	return part
}

// silentKeyword marks a schema made by the compiler whose properties are not the object's own list of them.
const silentKeyword = "\x00silent"

func (c *compiler) patternParts(t term, patterns *value) (parts []patternPart) {
	if patterns == nil {
		return nil
	}
	if patterns.kind != typeObject {
		c.fail(expr.ErrInvalid, t.path, "patternProperties must be an object")
		return nil
	}
	for i, p := range patterns.keys {
		d := c.search(p, t.path+"/patternProperties")
		if c.err != nil {
			return nil
		}
		at := t.sub(patterns.items[i], "/patternProperties/"+pointerPart(p))
		parts = append(parts, patternPart{p, d, at})
	}
	return parts
}

// itemsOf returns what a schema says about items.
func (c *compiler) itemsOf(t term) (part arrayPart, ok bool) {
	of := t.in.dialect
	prefix, items, more := t.schema.get("prefixItems"), t.schema.get("items"), t.schema.get("additionalItems")
	if !of.has("prefixItems") {
		prefix = nil
	}
	if !of.has("additionalItems") {
		more = nil
	}
	where := "/items"
	if items != nil && items.kind == typeArray { // before 2020-12
		if prefix != nil {
			c.fail(expr.ErrInvalid, t.path, "items as an array together with prefixItems")
			return part, false
		}
		prefix, items, where = items, more, "/additionalItems"
	}
	if prefix != nil {
		for _, p := range c.list(t, prefix, "prefixItems") {
			part.prefix = append(part.prefix, p.sub(p.schema, ""))
		}
	}
	if items != nil {
		at := t.sub(items, where)
		part.others = &at
	}
	part.scope = t.scope
	return part, prefix != nil || items != nil
}

func (c *compiler) gatherContains(s *shape, v *value, t term) {
	part := containsPart{term: t.sub(v, "/contains"), least: 1, most: -1}
	if t.in.dialect.has("minContains") {
		if least := t.schema.get("minContains"); least != nil {
			part.least, _ = c.count(least, t.path)
		}
		if most := t.schema.get("maxContains"); most != nil {
			part.most, _ = c.count(most, t.path)
		}
	}
	s.contains = append(s.contains, part)
}

// gatherReference merges the target of a reference.
func (c *compiler) gatherReference(s *shape, v *value, t term) {
	if !c.isString(v, "$ref", t.path) {
		return
	}
	to, ok := c.target(v.text, t)
	switch {
	case !ok:
	case s.bare: // an alternative of its own, because its target may be under compilation
		s.unions = append(s.unions, union{parts: []term{to}})
	default:
		c.gather(s, to)
	}
}
