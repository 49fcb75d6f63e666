package schema

import "strconv"

// bar merges that a value is not v. t is the schema that says so.
func (c *compiler) bar(s *shape, t term, v *value) {
	if v.kind != typeArray && v.kind != typeObject {
		s.barred = append(s.barred, v)
		return
	}
	t.not = false
	c.gather(s, t.same(c.derive(v, "barred", func() *value {
		if v.kind == typeArray {
			return otherThanArray(v, t.in.dialect)
		}
		return otherThanObject(v)
	}), ""))
}

// otherThanArray returns the schema of values that are not this array: of another type, shorter, longer, or with
// another item.
func otherThanArray(v *value, of dialect) *value {
	n := len(v.items)
	ways := []*value{otherTypes(typeArray), objectValue("type", textValue("array"), "minItems", countValue(n+1))}
	if n > 0 {
		ways = append(ways, objectValue("type", textValue("array"), "maxItems", countValue(n-1)))
	}
	list := "items"
	if of.has("prefixItems") {
		list = "prefixItems"
	}
	for i, item := range v.items {
		prefix := make([]*value, i+1)
		for k := range prefix {
			prefix[k] = objectValue()
		}
		prefix[i] = otherThan(item)
		ways = append(ways, objectValue("type", textValue("array"), "minItems", countValue(i+1), list, listValue(prefix...)))
	}
	return anyOf(ways)
}

// otherThanObject returns the schema of values that are not this object: of another type, with more properties, without
// one of them, or with another value for one.
func otherThanObject(v *value) *value {
	object := textValue("object")
	ways := []*value{otherTypes(typeObject), objectValue("type", object, "minProperties", countValue(len(v.keys)+1))}
	for i, name := range v.keys {
		ways = append(ways, objectValue("type", object, absentKeyword, namesValue(name)),
			objectValue("type", object, "required", namesValue(name), silentKeyword, objectValue(name, objectValue()),
				"properties", objectValue(name, otherThan(v.items[i]))))
	}
	return anyOf(ways)
}

func otherThan(v *value) *value { return objectValue("not", objectValue("enum", listValue(v))) }

func countValue(n int) *value { return &value{kind: anyNumber, text: strconv.Itoa(n)} }

// otherTypes returns the schema of values of all types but one.
func otherTypes(but typeSet) *value {
	types := []string{"null", "boolean", "number", "string"}
	if but != typeArray {
		types = append(types, "array")
	}
	if but != typeObject {
		types = append(types, "object")
	}
	return objectValue("type", namesValue(types...))
}
