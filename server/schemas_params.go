package server

import (
	"reflect"
)

// paramsSchemas are the schemas of the types with their own JSON methods.
var paramsSchemas = specials{
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
}
