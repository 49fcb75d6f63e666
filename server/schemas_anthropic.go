package server

import (
	"reflect"
)

// anthropicSchemas are the schemas of the types with their own JSON methods.
var anthropicSchemas = specials{
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
