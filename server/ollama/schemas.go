package ollama

import (
	"reflect"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openapi"
)

// schemas are the schemas of the types with their own JSON methods.
var schemas = openapi.Special{
	reflect.TypeFor[chatMessage](): openapi.Fixed(server.MessageSchema(openapi.Schema{"tool_name": openapi.Text,
		"images": openapi.Schema{"type": "array", "items": openapi.Text, "description": "files in base64"}})),
}
