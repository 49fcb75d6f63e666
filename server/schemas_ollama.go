package server

import (
	"reflect"
)

// ollamaSchemas are the schemas of the types with their own JSON methods.
var ollamaSchemas = specials{
	reflect.TypeFor[chatMessage](): fixed(messageSchema(schema{"tool_name": textSchema,
		"images": schema{"type": "array", "items": textSchema, "description": "files in base64"}})),
}
