package anthropic

import (
	"reflect"

	"github.com/ingotml/ingot/server/openapi"
)

// schemas are the schemas of the types with their own JSON methods.
var schemas = openapi.Special{
	reflect.TypeFor[blockSource](): func(s *openapi.Schemas) openapi.Schema {
		return s.Object(reflect.TypeFor[blockSource](), false)
	},
	reflect.TypeFor[thinkingParam](): openapi.Fixed(openapi.Schema{
		"type": []string{"object", "string", "boolean", "number", "null"}, "properties": openapi.Schema{
			"type":          openapi.Schema{"enum": []any{"enabled", "adaptive", "between_tools", "disabled"}},
			"budget_tokens": openapi.Schema{"type": "integer"},
			"display":       openapi.Schema{"enum": []any{"summarized", "omitted"}},
		}}),
	reflect.TypeFor[cacheControl](): openapi.Fixed(openapi.Schema{"properties": openapi.Schema{
		"type": openapi.Schema{"const": "ephemeral"}, "ttl": openapi.Schema{"enum": []any{"5m", "1h"}}}}),
	reflect.TypeFor[contentBlock](): func(s *openapi.Schemas) openapi.Schema {
		return openapi.Schema{"anyOf": []openapi.Schema{
			{"type": "string"},
			{"allOf": []openapi.Schema{s.Object(reflect.TypeFor[contentBlock](), false)}, "required": []string{"type"}},
		}}
	},
	reflect.TypeFor[contentBlocks](): func(s *openapi.Schemas) openapi.Schema {
		block := s.Of(reflect.TypeFor[contentBlock](), false)
		return openapi.Schema{"anyOf": []openapi.Schema{block, {"type": "array", "items": block}, {"type": "null"}}}
	},
}
