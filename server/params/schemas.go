package params

import (
	"reflect"

	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/server/openapi"
)

// Schemas are the schemas of the types with their own JSON methods.
var Schemas = openapi.Special{
	reflect.TypeFor[parameters.Texts](): openapi.Fixed(openapi.Schema{"anyOf": []openapi.Schema{
		{"type": []string{"string", "null"}}, {"type": "array", "items": openapi.Text},
	}}),
	reflect.TypeFor[draft](): openapi.Fixed(openapi.Schema{
		"type": []string{"integer", "string"}, "description": "draft depth: a number of tokens, auto or off",
	}),
	reflect.TypeFor[KeepAlive](): openapi.Fixed(openapi.Schema{
		"type":        []string{"number", "string", "null"},
		"description": "seconds, or a duration such as 5m; negative: forever",
	}),
	reflect.TypeFor[Thinking](): openapi.Fixed(openapi.Schema{
		"type": []string{"boolean", "string", "number", "object", "null"},
		"description": "whether and how much the model thinks: true, false, none, minimal, low, medium, high, xhigh, max, " +
			"or a number of tokens; the nearest that the model has",
	}),
	reflect.TypeFor[Format](): openapi.Fixed(openapi.Schema{
		"type":        []string{"string", "object", "null"},
		"description": "json, a JSON schema, a structural tag, regex:PATTERN, ebnf:GRAMMAR or lark:GRAMMAR",
	}),
}
