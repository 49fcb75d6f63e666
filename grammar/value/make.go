package value

import "strconv"

// Text returns a string.
func Text(s string) *Value { return &Value{Kind: String, Text: s} }

// List returns an array.
func List(items ...*Value) *Value { return &Value{Kind: Array, Items: items} }

// Names returns an array of strings.
func Names(names ...string) *Value {
	v := &Value{Kind: Array}
	for _, n := range names {
		v.Items = append(v.Items, Text(n))
	}
	return v
}

// Schema returns the schema with these keys and values in turn.
func Schema(pairs ...any) *Value {
	v := &Value{Kind: Object}
	for i := 0; i < len(pairs); i += 2 {
		v.Keys = append(v.Keys, pairs[i].(string))
		v.Items = append(v.Items, pairs[i+1].(*Value))
	}
	return v
}

// AnyOf returns the schema of any of the parts; without parts it holds for nothing.
func AnyOf(parts []*Value) *Value {
	if len(parts) == 0 {
		return &Value{Kind: Boolean}
	}
	return Schema("anyOf", List(parts...))
}

// Count returns a number.
func Count(n int) *Value { return &Value{Kind: AnyNumber, Text: strconv.Itoa(n)} }
