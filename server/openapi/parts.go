package openapi

import "maps"

// Fixed returns a special schema that is always the same.
func Fixed(s Schema) func(*Schemas) Schema { return func(*Schemas) Schema { return s } }

// Merged returns a schema with the members of both. Those of b win.
func Merged(a, b Schema) Schema {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

var (
	Text     = Schema{"type": "string"}
	Function = Schema{"name": Text, "description": Schema{"type": []string{"string", "null"}},
		"parameters": Schema{"type": []string{"object", "boolean", "null"}},
		"strict":     Schema{"type": []string{"boolean", "null"}}}
)
