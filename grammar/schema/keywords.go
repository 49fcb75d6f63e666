package schema

import (
	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/number"
	"github.com/ingotml/ingot/grammar/value"
)

// Some keywords are merged as other schemas with the same meaning, which are made here, once for each.

// conditions returns the alternatives of if, then and else.
func (c *compiler) conditions(v *value.Value, t term) []term {
	var yes, no []*value.Value
	if then := t.schema.Get("then"); then != nil {
		yes = append(yes, then)
	}
	if otherwise := t.schema.Get("else"); otherwise != nil {
		no = append(no, otherwise)
	}
	first := c.derive(v, "if", func() *value.Value {
		return value.Schema("allOf", value.List(append([]*value.Value{v}, yes...)...))
	})
	second := c.derive(v, "else", func() *value.Value {
		return value.Schema("allOf", value.List(append([]*value.Value{value.Schema("not", v)}, no...)...))
	})
	return []term{t.same(first, ""), t.same(second, "")}
}

// gatherDependencies merges dependentRequired, dependentSchemas, or both as dependencies.
func (c *compiler) gatherDependencies(s *shape, v *value.Value, t term) {
	if v.Kind != value.Object {
		c.fail(expr.ErrInvalid, t.path, "dependencies must be an object")
		return
	}
	for i, name := range v.Keys {
		needs := v.Items[i]
		if needs.Kind == value.String { // draft 3, and common in draft 4
			needs = c.derive(needs, "list", func() *value.Value { return value.List(needs) })
		}
		if needs.Kind == value.Array && len(needs.Items) == 0 || needs.Kind == value.Boolean && needs.Truth {
			continue
		}
		absent := c.derive(needs, "absent\x00"+name, func() *value.Value {
			return value.Schema(absentKeyword, value.Names(name))
		})
		present := c.derive(needs, "present\x00"+name, func() *value.Value {
			if needs.Kind == value.Array {
				all := append([]*value.Value{value.Text(name)}, needs.Items...)
				return value.Schema("type", value.Text("object"), "required", value.List(all...))
			}
			return value.Schema("type", value.Text("object"), "required", value.Names(name), "allOf", value.List(needs))
		})
		s.unions = append(s.unions, union{parts: []term{t.same(absent, "/dependencies/"+pointerPart(name)),
			t.same(present, "/dependencies/"+pointerPart(name))}})
	}
}

// keywords merge a keyword's value into a shape.
var keywords map[string]func(c *compiler, s *shape, v *value.Value, t term)

// typesOf returns the types that a schema's type allows.
func (c *compiler) typesOf(v *value.Value, t term) value.Types {
	types := c.types(v, t.path)
	if n := t.schema.Get("nullable"); n != nil && n.Truth && t.in.Dialect.Has("nullable") {
		types |= value.Null
	}
	return types
}

// bound returns the limit of a keyword. Draft 4 has a boolean exclusiveMinimum next to minimum; exclusive: the keyword
// is the exclusive one.
func (c *compiler) bound(v *value.Value, t term, low, exclusive bool) (*number.Bound, bool) {
	if exclusive && v.Kind == value.Boolean {
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
		e := t.schema.Get(name)
		exclusive = e != nil && e.Kind == value.Boolean && e.Truth
	}
	return &number.Bound{Value: r, Exclusive: exclusive}, true
}

// applies reports whether a keyword of a schema constrains values.
func (c *compiler) applies(t term, keyword string) bool {
	return !document.Annotations[keyword] && keywords[keyword] != nil && t.in.Dialect.Has(keyword)
}

// gatherParts merges the keywords that depend on each other.
func (c *compiler) gatherParts(s *shape, t term) {
	v := t.schema
	properties, patterns, others := v.Get("properties"), v.Get("patternProperties"), v.Get("additionalProperties")
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

// objectPartOf returns what a schema says about properties, which is made once.
func (c *compiler) objectPartOf(t term, properties, patterns, others *value.Value) objectPart {
	key := partKey{t.schema, t.in, t.outer}
	if part, ok := c.parts[key]; ok {
		return part
	}
	part := objectPart{properties: map[string]term{}, silent: t.schema.Get(silentKeyword) != nil}
	if properties != nil {
		if properties.Kind != value.Object {
			c.fail(expr.ErrInvalid, t.path, "properties must be an object")
			return part
		}
		part.names = properties.Keys
		for i, name := range properties.Keys {
			part.properties[name] = t.sub(properties.Items[i], "/properties/"+pointerPart(name))
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

func (c *compiler) patternParts(t term, patterns *value.Value) (parts []patternPart) {
	if patterns == nil {
		return nil
	}
	if patterns.Kind != value.Object {
		c.fail(expr.ErrInvalid, t.path, "patternProperties must be an object")
		return nil
	}
	for i, p := range patterns.Keys {
		d := c.search(p, t.path+"/patternProperties")
		if c.err != nil {
			return nil
		}
		at := t.sub(patterns.Items[i], "/patternProperties/"+pointerPart(p))
		parts = append(parts, patternPart{p, d, at})
	}
	return parts
}

// itemsOf returns what a schema says about items.
func (c *compiler) itemsOf(t term) (part arrayPart, ok bool) {
	of := t.in.Dialect
	prefix, items, more := t.schema.Get("prefixItems"), t.schema.Get("items"), t.schema.Get("additionalItems")
	if !of.Has("prefixItems") {
		prefix = nil
	}
	if !of.Has("additionalItems") {
		more = nil
	}
	where := "/items"
	if items != nil && items.Kind == value.Array { // before 2020-12
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

func (c *compiler) gatherContains(s *shape, v *value.Value, t term) {
	part := containsPart{term: t.sub(v, "/contains"), least: 1, most: -1}
	if t.in.Dialect.Has("minContains") {
		if least := t.schema.Get("minContains"); least != nil {
			part.least, _ = c.count(least, t.path)
		}
		if most := t.schema.Get("maxContains"); most != nil {
			part.most, _ = c.count(most, t.path)
		}
	}
	s.contains = append(s.contains, part)
}

// isUnion are the keywords that are alternatives and nothing else.
var isUnion = value.SetOf([]string{"$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf"})
