package server

import (
	"maps"
	"reflect"

	"github.com/ingotml/ingot/chat"
)

// specialSchemas are the schemas of types with their own JSON methods.
var specialSchemas = map[reflect.Type]func(*schemas) schema{
	reflect.TypeFor[texts](): fixed(schema{"anyOf": []schema{
		{"type": []string{"string", "null"}}, {"type": "array", "items": textSchema},
	}}),
	reflect.TypeFor[draft](): fixed(schema{
		"type": []string{"integer", "string"}, "description": "draft depth: a number of tokens, auto or off",
	}),
	reflect.TypeFor[keepAlive](): fixed(schema{
		"type":        []string{"number", "string", "null"},
		"description": "seconds, or a duration such as 5m; negative: forever",
	}),
	reflect.TypeFor[thinking](): fixed(schema{"enum": []any{true, false, "low", "medium", "high", nil}}),
	reflect.TypeFor[format](): fixed(schema{
		"type":        []string{"string", "object", "null"},
		"description": "json, a JSON schema, regex:PATTERN or ebnf:GRAMMAR",
	}),
	reflect.TypeFor[chat.Tool]():    fixed(toolSchema),
	reflect.TypeFor[chat.Message](): fixed(messageSchema(nil)),
	reflect.TypeFor[chatMessage](): fixed(messageSchema(schema{"tool_name": textSchema,
		"images": schema{"type": "array", "items": textSchema, "description": "files in base64"}})),

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
	reflect.TypeFor[inputs]():  fixed(promptSchema),
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
	reflect.TypeFor[blockSource](): func(s *schemas) schema {
		return s.object(reflect.TypeFor[blockSource](), false)
	},
	reflect.TypeFor[contentBlocks](): func(s *schemas) schema {
		return schema{"anyOf": []schema{
			{"type": []string{"string", "null"}},
			{"type": "array", "items": s.of(reflect.TypeFor[contentBlock](), false)},
		}}
	},
}

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
