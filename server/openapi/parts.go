package openapi

import "maps"

func Fixed(s Schema) func(*Schemas) Schema { return func(*Schemas) Schema { return s } }

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
