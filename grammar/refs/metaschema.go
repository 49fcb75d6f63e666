// Package refs has the schemas that references in schemas lead to: those of a folder, and the metaschemas, without a
// file.
//
// Contract: nothing is fetched. The metaschemas allow what the published ones allow
// (https://json-schema.org/specification-links), and have their definitions and properties at the same places. Where
// copies of a published one differ, they are the strictest. They are made of a table of keywords. The two drafts that
// split theirs into vocabularies have one schema with all of them here.
package refs

import (
	"fmt"
	"strings"
)

// Metaschema returns the schema of schemas at an address without its fragment, or nil.
func Metaschema(uri string) []byte {
	_, address, _ := strings.Cut(uri, "://")
	for i := range drafts {
		if drafts[i].address == address {
			return drafts[i].source()
		}
	}
	return nil
}

// draft is a version of the specification.
type draft struct {
	version     int
	address     string
	id, self    string // the keyword of an identifier; a reference to the schema itself
	anchor      string // what self needs
	definitions string // the keyword of definitions
}

var drafts = []draft{
	{4, "json-schema.org/draft-04/schema", `"id"`, `{"$ref": "#"}`, "", "definitions"},
	{6, "json-schema.org/draft-06/schema", `"$id"`, `{"$ref": "#"}`, "", "definitions"},
	{7, "json-schema.org/draft-07/schema", `"$id"`, `{"$ref": "#"}`, "", "definitions"},
	{2019, "json-schema.org/draft/2019-09/schema", `"$id"`, `{"$recursiveRef": "#"}`, `"$recursiveAnchor": true, `,
		"$defs"},
	{2020, "json-schema.org/draft/2020-12/schema", `"$id"`, `{"$dynamicRef": "#meta"}`, `"$dynamicAnchor": "meta", `,
		"$defs"},
}

// entry is a keyword, or a definition, of the drafts from one to another; until 0: to the last. Its schema may name
// others in angle brackets: <self>, a definition, or a text of parts.
type entry struct {
	name         string
	since, until int
	schema       string
}

var parts = map[string]string{
	"text":    `{"type": "string"}`,
	"number":  `{"type": "number"}`,
	"boolean": `{"type": "boolean"}`,
	"any":     `{}`,
	"schemas": `{"type": "object", "additionalProperties": <self>}`,
	"uri":     `{"type": "string", "format": "uri"}`,
	"ref":     `{"type": "string", "format": "uri-reference"}`,
	"types":   `{"anyOf": [<simpleTypes>, {"type": "array", "items": <simpleTypes>, "minItems": 1, "uniqueItems": true}]}`,
	"either":  `{"type": "object", "additionalProperties": {"anyOf": [<self>, <stringArray>]}}`,
}

var definitions = []entry{
	{"schemaArray", 4, 0, `{"type": "array", "minItems": 1, "items": <self>}`},
	{"positiveInteger", 4, 4, `{"type": "integer", "minimum": 0}`},
	{"positiveIntegerDefault0", 4, 4, `{"allOf": [<positiveInteger>, {"default": 0}]}`},
	{"nonNegativeInteger", 6, 0, `{"type": "integer", "minimum": 0}`},
	{"nonNegativeIntegerDefault0", 6, 0, `{"allOf": [<nonNegativeInteger>, {"default": 0}]}`},
	{"simpleTypes", 4, 0, `{"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}`},
	{"stringArray", 4, 4, `{"type": "array", "items": <text>, "minItems": 1, "uniqueItems": true}`},
	{"stringArray", 6, 0, `{"type": "array", "items": <text>, "uniqueItems": true}`},
	{"anchorString", 2020, 0, `{"type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"}`},
}

var keywords = []entry{
	{"id", 4, 4, `<text>`},
	{"$id", 6, 7, `<ref>`},
	{"$id", 2019, 0, `{"type": "string", "format": "uri-reference", "pattern": "^[^#]*#?$"}`},
	{"$ref", 4, 4, `<ref>`}, // many copies of this schema lack it
	{"$schema", 4, 0, `<uri>`},
	{"$ref", 6, 0, `<ref>`},
	{"$anchor", 2019, 2019, `{"type": "string", "pattern": "^[A-Za-z][-A-Za-z0-9.:_]*$"}`},
	{"$anchor", 2020, 0, `<anchorString>`},
	{"$dynamicRef", 2020, 0, `<ref>`},
	{"$dynamicAnchor", 2020, 0, `<anchorString>`},
	{"$recursiveRef", 2019, 0, `<ref>`},
	{"$recursiveAnchor", 2019, 2019, `<boolean>`},
	{"$recursiveAnchor", 2020, 0, `<anchorString>`},
	{"$vocabulary", 2019, 0, `{"type": "object", "propertyNames": <uri>, "additionalProperties": <boolean>}`},
	{"$comment", 7, 0, `<text>`},
	{"title", 4, 0, `<text>`},
	{"description", 4, 0, `<text>`},
	{"default", 4, 0, `<any>`},
	{"deprecated", 2019, 0, `<boolean>`},
	{"readOnly", 7, 0, `<boolean>`},
	{"writeOnly", 7, 0, `<boolean>`},
	{"examples", 6, 0, `{"type": "array"}`},
	{"multipleOf", 4, 4, `{"type": "number", "minimum": 0, "exclusiveMinimum": true}`},
	{"multipleOf", 6, 0, `{"type": "number", "exclusiveMinimum": 0}`},
	{"maximum", 4, 0, `<number>`},
	{"exclusiveMaximum", 4, 4, `<boolean>`},
	{"exclusiveMaximum", 6, 0, `<number>`},
	{"minimum", 4, 0, `<number>`},
	{"exclusiveMinimum", 4, 4, `<boolean>`},
	{"exclusiveMinimum", 6, 0, `<number>`},
	{"maxLength", 4, 0, `<count>`},
	{"minLength", 4, 0, `<countDefault0>`},
	{"pattern", 4, 0, `{"type": "string", "format": "regex"}`},
	{"additionalItems", 4, 4, `{"anyOf": [<boolean>, <self>]}`},
	{"additionalItems", 6, 2019, `<self>`},
	{"unevaluatedItems", 2019, 0, `<self>`},
	{"prefixItems", 2020, 0, `<schemaArray>`},
	{"items", 4, 2019, `{"anyOf": [<self>, <schemaArray>]}`},
	{"items", 2020, 0, `<self>`},
	{"maxItems", 4, 0, `<count>`},
	{"minItems", 4, 0, `<countDefault0>`},
	{"uniqueItems", 4, 0, `<boolean>`},
	{"contains", 6, 0, `<self>`},
	{"maxContains", 2019, 0, `<count>`},
	{"minContains", 2019, 0, `<count>`},
	{"maxProperties", 4, 0, `<count>`},
	{"minProperties", 4, 0, `<countDefault0>`},
	{"required", 4, 0, `<stringArray>`},
	{"additionalProperties", 4, 4, `{"anyOf": [<boolean>, <self>]}`},
	{"additionalProperties", 6, 0, `<self>`},
	{"unevaluatedProperties", 2019, 0, `<self>`},
	{"$defs", 2019, 0, `<schemas>`},
	{"definitions", 4, 0, `<schemas>`},
	{"properties", 4, 0, `<schemas>`},
	{"patternProperties", 4, 6, `<schemas>`},
	{"patternProperties", 7, 0,
		`{"type": "object", "additionalProperties": <self>, "propertyNames": {"format": "regex"}}`},
	{"dependencies", 4, 0, `<either>`},
	{"dependentSchemas", 2019, 0, `<schemas>`},
	{"dependentRequired", 2019, 0, `{"type": "object", "additionalProperties": <stringArray>}`},
	{"propertyNames", 6, 0, `<self>`},
	{"const", 6, 0, `<any>`},
	{"enum", 4, 7, `{"type": "array", "minItems": 1, "uniqueItems": true}`},
	{"enum", 2019, 0, `{"type": "array"}`},
	{"type", 4, 0, `<types>`},
	{"format", 4, 0, `<text>`},
	{"contentMediaType", 7, 0, `<text>`},
	{"contentEncoding", 7, 0, `<text>`},
	{"contentSchema", 2019, 0, `<self>`},
	{"if", 7, 0, `<self>`},
	{"then", 7, 0, `<self>`},
	{"else", 7, 0, `<self>`},
	{"allOf", 4, 0, `<schemaArray>`},
	{"anyOf", 4, 0, `<schemaArray>`},
	{"oneOf", 4, 0, `<schemaArray>`},
	{"not", 4, 0, `<self>`},
}

func (d *draft) has(e entry) bool {
	return e.since <= d.version && (e.until == 0 || d.version <= e.until)
}

func (d *draft) source() []byte {
	scheme, fragment := "http://", "#"
	if d.version >= 2019 {
		scheme, fragment = "https://", ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"$schema": %q, %s: %q, %s`, scheme+d.address+fragment, d.id, scheme+d.address+fragment, d.anchor)
	if d.version == 4 {
		b.WriteString(`"type": "object", ` +
			`"dependencies": {"exclusiveMaximum": ["maximum"], "exclusiveMinimum": ["minimum"]}, `)
	} else {
		b.WriteString(`"type": ["object", "boolean"], `)
	}
	fmt.Fprintf(&b, `%q: {%s}, "properties": {%s}}`, d.definitions, d.list(definitions), d.list(keywords))
	return []byte(b.String())
}

func (d *draft) list(entries []entry) string {
	var all []string
	for _, e := range entries {
		if d.has(e) {
			all = append(all, fmt.Sprintf("%q: %s", e.name, d.fill(e.schema)))
		}
	}
	return strings.Join(all, ", ")
}

// fill replaces the names in a schema.
func (d *draft) fill(schema string) string {
	before, rest, found := strings.Cut(schema, "<")
	if !found {
		return schema
	}
	name, after, _ := strings.Cut(rest, ">")
	if text, ok := parts[name]; ok {
		return before + d.fill(text) + d.fill(after)
	}
	count := "nonNegativeInteger"
	if d.version == 4 {
		count = "positiveInteger"
	}
	switch {
	case name == "self":
		return before + d.self + d.fill(after)
	case strings.HasPrefix(name, "count"):
		name = strings.Replace(name, "count", count, 1)
	}
	return before + fmt.Sprintf(`{"$ref": "#/%s/%s"}`, d.definitions, name) + d.fill(after)
}
