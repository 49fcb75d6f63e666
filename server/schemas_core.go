package server

import (
	"maps"
	"reflect"

	"github.com/ingotml/ingot/chat"
)

// coreSchemas are the schemas of the types with their own JSON methods.
var coreSchemas = specials{
	reflect.TypeFor[inputs]():       fixed(promptSchema),
	reflect.TypeFor[chat.Tool]():    fixed(toolSchema),
	reflect.TypeFor[chat.Message](): fixed(messageSchema(nil)),
}

// promptSchema is one or several texts or lists of token ids.
var promptSchema = schema{"anyOf": []schema{
	{"type": []string{"string", "null"}},
	{"type": "array", "items": schema{"type": "integer"}},
	{"type": "array", "items": schema{"anyOf": []schema{
		textSchema, {"type": "array", "items": schema{"type": "integer"}},
	}}},
}}

// toolSchema is the schema of a tool. Further members are passed to the chat template.
var toolSchema = schema{"type": "object", "required": []string{"function"}, "properties": schema{
	"type":     textSchema,
	"function": schema{"type": "object", "required": []string{"name"}, "properties": functionSchema},
}}

// messageSchema is the schema of chat.Message, with more members.
func messageSchema(more schema) schema {
	maybe := schema{"type": []string{"string", "null"}}
	properties := schema{
		"role": textSchema, "name": textSchema, "tool_call_id": textSchema,
		"reasoning_content": maybe, "reasoning": maybe, "thinking": maybe,
		"content": schema{"type": []string{"string", "array", "null"}, "items": schema{
			"type": "object", "required": []string{"type"},
			"properties": schema{"type": textSchema, "text": textSchema},
		}},
		"tool_calls": schema{"type": []string{"array", "null"}, "items": schema{"type": "object", "properties": schema{
			"id": textSchema, "type": textSchema,
			"function": schema{"type": "object", "required": []string{"name"}, "properties": schema{
				"name": textSchema, "arguments": schema{"type": []string{"object", "string"}},
			}},
		}}},
	}
	maps.Copy(properties, more)
	return schema{"type": "object", "required": []string{"role"}, "properties": properties}
}
