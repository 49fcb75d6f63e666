package server

import (
	"maps"
	"reflect"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server/openapi"
)

// coreSchemas are the schemas of the types with their own JSON methods.
var coreSchemas = openapi.Special{
	reflect.TypeFor[Inputs]():       openapi.Fixed(PromptSchema),
	reflect.TypeFor[chat.Tool]():    openapi.Fixed(toolSchema),
	reflect.TypeFor[chat.Message](): openapi.Fixed(MessageSchema(nil)),
}

// PromptSchema is one or several texts or lists of token ids.
var PromptSchema = openapi.Schema{"anyOf": []openapi.Schema{
	{"type": []string{"string", "null"}},
	{"type": "array", "items": openapi.Schema{"type": "integer"}},
	{"type": "array", "items": openapi.Schema{"anyOf": []openapi.Schema{
		openapi.Text, {"type": "array", "items": openapi.Schema{"type": "integer"}},
	}}},
}}

// toolSchema is the schema of a tool. Further members are passed to the chat template.
var toolSchema = openapi.Schema{"type": "object", "required": []string{"function"}, "properties": openapi.Schema{
	"type":     openapi.Text,
	"function": openapi.Schema{"type": "object", "required": []string{"name"}, "properties": openapi.Function},
}}

// MessageSchema is the schema of chat.Message, with more members.
func MessageSchema(more openapi.Schema) openapi.Schema {
	maybe := openapi.Schema{"type": []string{"string", "null"}}
	properties := openapi.Schema{
		"role": openapi.Text, "name": openapi.Text, "tool_call_id": openapi.Text,
		"reasoning_content": maybe, "reasoning": maybe, "thinking": maybe,
		"content": openapi.Schema{"type": []string{"string", "array", "null"}, "items": openapi.Schema{
			"type": "object", "required": []string{"type"},
			"properties": openapi.Schema{"type": openapi.Text, "text": openapi.Text},
		}},
		"tool_calls": openapi.Schema{"type": []string{"array", "null"}, "items": openapi.Schema{"type": "object",
			"properties": openapi.Schema{
				"id": openapi.Text, "type": openapi.Text,
				"function": openapi.Schema{"type": "object", "required": []string{"name"}, "properties": openapi.Schema{
					"name": openapi.Text, "arguments": openapi.Schema{"type": []string{"object", "string"}},
				}},
			}}},
	}
	maps.Copy(properties, more)
	return openapi.Schema{"type": "object", "required": []string{"role"}, "properties": properties}
}
