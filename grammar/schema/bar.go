package schema

import (
	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/value"
)

// bar merges that a value is not v. t is the schema that says so.
func (c *compiler) bar(s *shape, t term, v *value.Value) {
	if v.Kind != value.Array && v.Kind != value.Object {
		s.barred = append(s.barred, v)
		return
	}
	t.not = false
	c.gather(s, t.same(c.derive(v, "barred", func() *value.Value {
		if v.Kind == value.Array {
			return otherThanArray(v, t.in.Dialect)
		}
		return otherThanObject(v)
	}), ""))
}

// otherThanArray returns the schema of values that are not this array: of another type, shorter, longer, or with
// another item.
func otherThanArray(v *value.Value, of document.Dialect) *value.Value {
	n := len(v.Items)
	array := value.Text("array")
	ways := []*value.Value{otherTypes(value.Array), value.Schema("type", array, "minItems", value.Count(n+1))}
	if n > 0 {
		ways = append(ways, value.Schema("type", array, "maxItems", value.Count(n-1)))
	}
	list := "items"
	if of.Has("prefixItems") {
		list = "prefixItems"
	}
	for i, item := range v.Items {
		prefix := make([]*value.Value, i+1)
		for k := range prefix {
			prefix[k] = value.Schema()
		}
		prefix[i] = otherThan(item)
		ways = append(ways, value.Schema("type", array, "minItems", value.Count(i+1), list, value.List(prefix...)))
	}
	return value.AnyOf(ways)
}

// otherThanObject returns the schema of values that are not this object: of another type, with more properties, without
// one of them, or with another value for one.
func otherThanObject(v *value.Value) *value.Value {
	object := value.Text("object")
	more := value.Schema("type", object, "minProperties", value.Count(len(v.Keys)+1))
	ways := []*value.Value{otherTypes(value.Object), more}
	for i, name := range v.Keys {
		ways = append(ways, value.Schema("type", object, absentKeyword, value.Names(name)),
			value.Schema("type", object, "required", value.Names(name), silentKeyword, value.Schema(name, value.Schema()),
				"properties", value.Schema(name, otherThan(v.Items[i]))))
	}
	return value.AnyOf(ways)
}

func otherThan(v *value.Value) *value.Value {
	return value.Schema("not", value.Schema("enum", value.List(v)))
}

// otherTypes returns the schema of values of all types but one.
func otherTypes(but value.Types) *value.Value {
	types := []string{"null", "boolean", "number", "string"}
	if but != value.Array {
		types = append(types, "array")
	}
	if but != value.Object {
		types = append(types, "object")
	}
	return value.Schema("type", value.Names(types...))
}
