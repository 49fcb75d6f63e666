package server

import "maps"

func fixed(s schema) func(*schemas) schema { return func(*schemas) schema { return s } }

func merged(a, b schema) schema {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

var (
	textSchema     = schema{"type": "string"}
	functionSchema = schema{"name": textSchema, "description": schema{"type": []string{"string", "null"}},
		"parameters": schema{"type": []string{"object", "boolean", "null"}},
		"strict":     schema{"type": []string{"boolean", "null"}}}
)
