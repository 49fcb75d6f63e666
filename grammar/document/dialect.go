package document

import (
	"strings"

	"github.com/ingotml/ingot/grammar/value"
)

// Dialect is a version of the specification, as a number that orders them. The zero value is a schema without $schema:
// draft 2020-12 with the equivalents of older drafts and of OpenAPI.
type Dialect int

// The dialects that differ.
const (
	AnyDraft  Dialect = 0
	Draft4    Dialect = 4
	draft6    Dialect = 6
	draft7    Dialect = 7
	draft2019 Dialect = 2019
	draft2020 Dialect = 2020
)

// dialectOf returns the dialect of a $schema, AnyDraft if it is not one of the specification's.
func dialectOf(uri string) Dialect {
	for _, d := range []struct {
		part string
		is   Dialect
	}{
		{"json-schema.org/draft-04/", Draft4}, {"json-schema.org/draft-06/", draft6},
		{"json-schema.org/draft-07/", draft7}, {"json-schema.org/draft/2019-09/", draft2019},
		{"json-schema.org/draft/2020-12/", draft2020},
	} {
		if strings.Contains(uri, d.part) {
			return d.is
		}
	}
	return AnyDraft
}

// since and until are the first and the last draft with a keyword, if not all have it.
var (
	since = map[string]Dialect{"const": draft6, "contains": draft6, "propertyNames": draft6, "if": draft7,
		"then": draft7, "else": draft7, "dependentRequired": draft2019, "dependentSchemas": draft2019,
		"minContains": draft2019, "maxContains": draft2019, "unevaluatedItems": draft2019,
		"unevaluatedProperties": draft2019, "$anchor": draft2019, "$recursiveRef": draft2019, "prefixItems": draft2020,
		"$dynamicRef": draft2020, "$dynamicAnchor": draft2020, "$id": draft6}
	until = map[string]Dialect{"dependencies": draft7, "additionalItems": draft2019, "$recursiveRef": draft2019,
		"id": Draft4}
)

// Has reports whether a keyword means something in the dialect.
func (d Dialect) Has(keyword string) bool {
	if keyword == "nullable" { // OpenAPI 3.0
		return d == AnyDraft
	}
	if d == AnyDraft {
		return keyword != "id"
	}
	last, ok := until[keyword]
	return d >= since[keyword] && (!ok || d <= last)
}

// RefAlone reports whether a $ref hides the keywords next to it.
func (d Dialect) RefAlone() bool { return d != AnyDraft && d <= draft7 }

// Annotations are the keywords that do not constrain values. Definitions are compiled when something refers to them.
var Annotations = value.SetOf([]string{"title", "description", "default", "examples", "example", "$comment", "$schema",
	"$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions", "$vocabulary", "deprecated",
	"readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "discriminator", "externalDocs",
	"xml", "id"})

// Keywords by what they hold, for the walk over a document's schemas.
var (
	holdsSchema = value.SetOf([]string{"not", "if", "then", "else", "contains", "propertyNames", "additionalProperties",
		"additionalItems", "unevaluatedItems", "unevaluatedProperties", "items", "contentSchema"})
	holdsList = value.SetOf([]string{"allOf", "anyOf", "oneOf", "prefixItems", "items"})
	holdsMap  = value.SetOf([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
		"dependencies"})
)
