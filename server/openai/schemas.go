package openai

import (
	"reflect"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openapi"
)

// schemas are the schemas of the types with their own JSON methods.
var schemas = openapi.Special{
	reflect.TypeFor[unsupported](): openapi.Fixed(openapi.Schema{
		"description": "not supported; values without effect are accepted",
	}),
	reflect.TypeFor[topTokens](): openapi.Fixed(openapi.Schema{"type": []string{"object", "null"},
		"additionalProperties": openapi.Schema{"type": "number"}}),
	reflect.TypeFor[toolChoice](): openapi.Fixed(openapi.Schema{"anyOf": []openapi.Schema{{"enum": []any{"auto", "none",
		"required", "", nil}},
		{"type": "object", "required": []string{"type"}, "properties": openapi.Schema{"type": openapi.Text}}}}),
	reflect.TypeFor[responseFormat](): openapi.Fixed(openapi.Schema{"type": []string{"object", "null"},
		"properties": openapi.Schema{
			"type": openapi.Schema{"enum": []any{"text", "json_object", "json_schema", "structural_tag"}},
			"json_schema": openapi.Schema{"type": "object", "properties": openapi.Schema{
				"name": openapi.Text, "schema": openapi.Schema{"type": "object"},
			}},
			"schema": openapi.Schema{"type": "object"},
			"format": openapi.Schema{"type": "object", "description": "of a structural tag"},
		}}),
	reflect.TypeFor[prompts](): openapi.Fixed(server.PromptSchema),
	reflect.TypeFor[responseTools](): openapi.Fixed(openapi.Schema{"type": []string{"array", "null"},
		"items": openapi.Schema{
			"type": "object", "required": []string{"type", "name"},
			"properties": openapi.Merged(openapi.Schema{"type": openapi.Text}, openapi.Function),
		}}),
	reflect.TypeFor[input](): func(s *openapi.Schemas) openapi.Schema {
		return openapi.Schema{"anyOf": []openapi.Schema{
			{"type": []string{"string", "null"}},
			{"type": "array", "items": s.Of(reflect.TypeFor[inputItem](), false)},
		}}
	},
}
