package server

import (
	"reflect"
)

// openaiSchemas are the schemas of the types with their own JSON methods.
var openaiSchemas = specials{
	reflect.TypeFor[unsupported](): fixed(schema{"description": "not supported; values without effect are accepted"}),
	reflect.TypeFor[effort](): fixed(schema{
		"enum": []any{"none", "minimal", "low", "medium", "high", "xhigh", "max", nil},
	}),
	reflect.TypeFor[toolChoice](): fixed(schema{"anyOf": []schema{{"enum": []any{"auto", "none", "required", "", nil}},
		{"type": "object", "required": []string{"type"}, "properties": schema{"type": textSchema}}}}),
	reflect.TypeFor[responseFormat](): fixed(schema{"type": []string{"object", "null"}, "properties": schema{
		"type": schema{"enum": []any{"text", "json_object", "json_schema"}},
		"json_schema": schema{"type": "object", "properties": schema{
			"name": textSchema, "schema": schema{"type": "object"},
		}},
		"schema": schema{"type": "object"},
	}}),
	reflect.TypeFor[prompts](): fixed(promptSchema),
	reflect.TypeFor[responseTools](): fixed(schema{"type": []string{"array", "null"}, "items": schema{
		"type": "object", "required": []string{"type", "name"},
		"properties": merged(schema{"type": textSchema}, functionSchema),
	}}),
	reflect.TypeFor[input](): func(s *schemas) schema {
		return schema{"anyOf": []schema{
			{"type": []string{"string", "null"}},
			{"type": "array", "items": s.of(reflect.TypeFor[inputItem](), false)},
		}}
	},
}
