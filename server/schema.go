package server

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

// schema is a JSON Schema 2020-12 schema, as OpenAPI 3.1 uses it.
type schema map[string]any

// specials are the schemas of types with their own JSON methods.
type specials map[reflect.Type]func(*schemas) schema

// schemas derives schemas from the Go types of requests and responses. Structs become components, so they may be
// recursive.
type schemas struct {
	special    specials
	components map[string]schema
	names      map[use]string
	unknown    []string // types with their own JSON methods and no special schema
}

// use is a type in a request, or in a response.
type use struct {
	t        reflect.Type
	response bool
}

func newSchemas(special specials) *schemas {
	return &schemas{special: special, components: map[string]schema{}, names: map[use]string{}}
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type. Schemas of responses list all members; those of requests allow others, which are
// ignored.
func (s *schemas) of(t reflect.Type, response bool) schema {
	if known, ok := s.special[t]; ok {
		return known(s)
	}
	switch t {
	case timeType:
		return schema{"type": "string", "format": "date-time"}
	case rawType:
		return schema{}
	}
	if t.Kind() == reflect.Pointer {
		return orNullSchema(s.of(t.Elem(), response))
	}
	if !response && reflect.PointerTo(t).Implements(unmarshaler) || response && t.Implements(marshaler) {
		s.unknown = append(s.unknown, t.String())
		return schema{}
	}
	if response && t.Implements(textMarshaler) {
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "contentEncoding": "base64"}
		}
		return schema{"type": "array", "items": s.of(t.Elem(), response)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem(), response)}
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t, response)
		}
		return s.component(t, response)
	}
	return schema{} // any value
}

// component returns a reference to the schema of a struct.
func (s *schemas) component(t reflect.Type, response bool) schema {
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
		s.components[name] = s.object(t, response)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

// componentName returns a type's component name.
func componentName(t reflect.Type) string {
	r, size := utf8.DecodeRuneInString(t.Name())
	return string(unicode.ToUpper(r)) + t.Name()[size:]
}

func (s *schemas) object(t reflect.Type, response bool) schema {
	properties, required := schema{}, []string{}
	for _, f := range jsonFields(t) {
		properties[f.name] = s.of(f.t, response)
		if response && f.t.Kind() == reflect.Slice && slices.Contains(maybeNull, t.Name()+"."+f.name) {
			properties[f.name] = orNullSchema(s.of(f.t, response))
		}
		if response && !f.optional {
			required = append(required, f.name)
		}
	}
	out := schema{"type": "object", "properties": properties}
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
func orNullSchema(s schema) schema {
	if t, ok := s["type"].(string); ok && len(s) == 1 {
		return schema{"type": []string{t, "null"}}
	}
	if len(s) == 0 {
		return s
	}
	return schema{"anyOf": []schema{s, {"type": "null"}}}
}
