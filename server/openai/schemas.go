package openai

import (
	"reflect"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/openapi"
)

// schemas are the schemas of the types with their own JSON methods.
var schemas = openapi.Special{
	reflect.TypeFor[unsupported](): openapi.Fixed(openapi.Schema{
		"description": "not supported; values without effect are accepted",
	}),
	reflect.TypeFor[topTokens](): openapi.Fixed(openapi.Schema{"type": []string{"object", "null"},
		"additionalProperties": openapi.Schema{"type": "number"}}),
	reflect.TypeFor[tools.Choice](): openapi.Fixed(openapi.Schema{"anyOf": []openapi.Schema{{"enum": []any{"auto", "none",
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
	reflect.TypeFor[chatMessages](): func(s *openapi.Schemas) openapi.Schema {
		return openapi.Schema{"type": "array", "items": s.Of(reflect.TypeFor[chat.Message](), false)}
	},
	reflect.TypeFor[chatFunctions](): openapi.Fixed(openapi.Schema{"type": []string{"array", "null"},
		"items": openapi.Schema{"type": "object", "required": []string{"name"}, "properties": openapi.Function}}),
	reflect.TypeFor[chatTools](): openapi.Fixed(toolsSchema(openapi.Schema{
		"function": openapi.Schema{"type": "object", "required": []string{"name"}, "properties": openapi.Function},
		"custom":   openapi.Schema{"type": "object", "required": []string{"name"}, "properties": customSchema},
	})),
	reflect.TypeFor[responseTools](): openapi.Fixed(toolsSchema(openapi.Merged(openapi.Function,
		openapi.Merged(customSchema, openapi.Schema{"tools": openapi.Schema{"type": "array",
			"items": openapi.Schema{"type": "object"}, "description": "of a namespace"}})))),
	reflect.TypeFor[items.Input](): openapi.Fixed(openapi.Schema{"anyOf": []openapi.Schema{
		{"type": []string{"string", "null"}},
		{"type": "array", "items": openapi.Schema{"type": "object", "properties": openapi.Schema{
			"type": openapi.Text, "id": openapi.Text, "role": openapi.Text, "call_id": openapi.Text,
			"namespace": openapi.Text, "name": openapi.Text, "input": openapi.Text,
			"content":   openapi.Schema{"type": []string{"string", "array", "null"}},
			"arguments": openapi.Schema{"type": []string{"string", "object", "null"}},
			"summary":   openapi.Schema{"type": []string{"array", "null"}},
			"output":    openapi.Schema{}, "encrypted_content": openapi.Schema{"type": []string{"string", "null"}},
		}}},
	}}),
}

// customSchema has the members of a custom tool.
var customSchema = openapi.Schema{"name": openapi.Text, "description": openapi.Text,
	"format": openapi.Schema{"type": "object", "description": "text, or a grammar in the syntax regex or lark"}}

// toolsSchema is the schema of a list of tools with these members.
func toolsSchema(members openapi.Schema) openapi.Schema {
	return openapi.Schema{"type": []string{"array", "null"}, "items": openapi.Schema{"type": "object",
		"properties": openapi.Merged(openapi.Schema{"type": openapi.Text}, members)}}
}
