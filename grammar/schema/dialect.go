package schema

import "strings"

// dialect is a version of the specification, as a number that orders them. The zero value is a schema without $schema:
// draft 2020-12 with the equivalents of older drafts and of OpenAPI.
type dialect int

const (
	anyDraft  dialect = 0
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

// dialectOf returns the dialect of a $schema, anyDraft if it is not one of the specification's.
func dialectOf(uri string) dialect {
	for _, d := range []struct {
		part string
		is   dialect
	}{
		{"json-schema.org/draft-04/", draft4}, {"json-schema.org/draft-06/", draft6},
		{"json-schema.org/draft-07/", draft7}, {"json-schema.org/draft/2019-09/", draft2019},
		{"json-schema.org/draft/2020-12/", draft2020},
	} {
		if strings.Contains(uri, d.part) {
			return d.is
		}
	}
	return anyDraft
}

// since and until are the first and the last draft with a keyword, if not all have it.
var (
	since = map[string]dialect{"const": draft6, "contains": draft6, "propertyNames": draft6, "if": draft7,
		"then": draft7, "else": draft7, "dependentRequired": draft2019, "dependentSchemas": draft2019,
		"minContains": draft2019, "maxContains": draft2019, "unevaluatedItems": draft2019,
		"unevaluatedProperties": draft2019, "$anchor": draft2019, "$recursiveRef": draft2019, "prefixItems": draft2020,
		"$dynamicRef": draft2020, "$dynamicAnchor": draft2020, "$id": draft6}
	until = map[string]dialect{"dependencies": draft7, "additionalItems": draft2019, "$recursiveRef": draft2019,
		"id": draft4}
)

// has reports whether a keyword means something in the dialect.
func (d dialect) has(keyword string) bool {
	if keyword == "nullable" { // OpenAPI 3.0
		return d == anyDraft
	}
	if d == anyDraft {
		return keyword != "id"
	}
	last, ok := until[keyword]
	return d >= since[keyword] && (!ok || d <= last)
}

// refAlone reports whether a $ref hides the keywords next to it.
func (d dialect) refAlone() bool { return d != anyDraft && d <= draft7 }

// annotations are the keywords that do not constrain values. Definitions are compiled when something refers to them.
var annotations = setOf([]string{"title", "description", "default", "examples", "example", "$comment", "$schema", "$id",
	"$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions", "$vocabulary", "deprecated", "readOnly",
	"writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "discriminator", "externalDocs", "xml", "id"})

// Keywords by what they hold, for the walk over a document's schemas.
var (
	holdsSchema = setOf([]string{"not", "if", "then", "else", "contains", "propertyNames", "additionalProperties",
		"additionalItems", "unevaluatedItems", "unevaluatedProperties", "items", "contentSchema"})
	holdsList = setOf([]string{"allOf", "anyOf", "oneOf", "prefixItems", "items"})
	holdsMap  = setOf([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
		"dependencies"})
)

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
