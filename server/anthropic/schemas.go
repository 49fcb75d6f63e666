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
	reflect.TypeFor[contentBlocks](): func(s *openapi.Schemas) openapi.Schema {
		return openapi.Schema{"anyOf": []openapi.Schema{
			{"type": []string{"string", "null"}},
			{"type": "array", "items": s.Of(reflect.TypeFor[contentBlock](), false)},
		}}
	},
}
