package openapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Schema is a JSON Schema 2020-12 schema, as OpenAPI 3.1 uses it.
type Schema map[string]any

// Special are the schemas of types with their own JSON methods.
type Special map[reflect.Type]func(*Schemas) Schema

// Schemas derives schemas from the Go types of requests and responses. Structs become components, so they may be
// recursive.
type Schemas struct {
	special    Special
	components map[string]Schema
	names      map[use]string
	unknown    []string // types with their own JSON methods and no special schema
}

// use is a type in a request, or in a response.
type use struct {
	t        reflect.Type
	response bool
}

func newSchemas(special Special) *Schemas {
	return &Schemas{special: special, components: map[string]Schema{}, names: map[use]string{}}
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// Of returns the schema of a type. Schemas of responses list all members; those of requests allow others, which are
// ignored.
func (s *Schemas) Of(t reflect.Type, response bool) Schema {
	if known, ok := s.special[t]; ok {
		return known(s)
	}
	switch t {
	case timeType:
		return Schema{"type": "string", "format": "date-time"}
	case rawType:
		return Schema{}
	}
	if t.Kind() == reflect.Pointer {
		return orNullSchema(s.Of(t.Elem(), response))
	}
	if !response && reflect.PointerTo(t).Implements(unmarshaler) || response && t.Implements(marshaler) {
		s.unknown = append(s.unknown, t.String())
		return Schema{}
	}
	if response && t.Implements(textMarshaler) {
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}
		}
		return Schema{"type": "array", "items": s.Of(t.Elem(), response)}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": s.Of(t.Elem(), response)}
	case reflect.Struct:
		if t.Name() == "" {
			return s.Object(t, response)
		}
		return s.component(t, response)
	}
	return Schema{} // any value
}

// component returns a reference to the schema of a struct.
func (s *Schemas) component(t reflect.Type, response bool) Schema {
	u := use{t, response}
	name, made := s.names[u]
	if !made {
		name = componentName(t)
		if _, taken := s.components[name]; taken && !response {
			name += "Request"
		} else if taken {
			name += "Answer"
		}
		s.names[u] = name
		s.components[name] = nil // reserves the name, in case the struct is recursive
		s.components[name] = s.Object(t, response)
	}
	return Schema{"$ref": "#/components/schemas/" + name}
}

// componentName returns a type's component name.
func componentName(t reflect.Type) string {
	r, size := utf8.DecodeRuneInString(t.Name())
	return string(unicode.ToUpper(r)) + t.Name()[size:]
}

// Object returns the schema of a struct, without a component of its own.
func (s *Schemas) Object(t reflect.Type, response bool) Schema {
	properties, required := Schema{}, []string{}
	for _, f := range jsonFields(t) {
		properties[f.name] = s.Of(f.t, response)
		if response && f.t.Kind() == reflect.Slice && slices.Contains(maybeNull, t.Name()+"."+f.name) {
			properties[f.name] = orNullSchema(s.Of(f.t, response))
		}
		if response && !f.optional {
			required = append(required, f.name)
		}
	}
	out := Schema{"type": "object", "properties": properties}
	if response {
		out["additionalProperties"] = false
		if len(required) > 0 {
			out["required"] = required
		}
	}
	return out
}

// maybeNull are lists in responses that may be null, as clients expect.
var maybeNull = []string{"chatLogProbs.refusal"}

// jsonField is a member of a struct in JSON.
type jsonField struct {
	name     string
	t        reflect.Type
	optional bool // may be omitted in a response
}

// jsonFields returns the members of a struct, including those of embedded structs.
func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			out = append(out, jsonFields(f.Type)...)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			out = append(out, jsonField{name, f.Type, strings.Contains(options, "omit")})
		}
	}
	return out
}

// orNullSchema returns a schema that also allows null.
func orNullSchema(s Schema) Schema {
	if t, ok := s["type"].(string); ok && len(s) == 1 {
		return Schema{"type": []string{t, "null"}}
	}
	if len(s) == 0 {
		return s
	}
	return Schema{"anyOf": []Schema{s, {"type": "null"}}}
}
