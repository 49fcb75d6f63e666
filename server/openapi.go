package server

import (
	"reflect"
	"strings"
)

// document collects operations. See https://spec.openapis.org/oas/v3.1.0.
type document struct {
	version string // of the program
	types   *schemas
	paths   map[string]map[string]any
}

// newDocument returns a document without operations. special are the schemas of types with their own JSON methods.
func newDocument(version string, special specials) *document {
	return &document{version: version, types: newSchemas(special), paths: map[string]map[string]any{}}
}

// add adds the operation of a route, in the form of net/http's patterns. failure is a value of the type of its errors.
func (d *document) add(method, pattern string, op operation, failure any) {
	path, parameters := pathOf(pattern)
	if d.paths[path] == nil {
		d.paths[path] = map[string]any{}
	}
	if name, about, ok := strings.Cut(op.query, " "); ok {
		parameters = append(parameters,
			map[string]any{"name": name, "in": "query", "description": about, "schema": schema{"type": "string"}})
	}
	d.paths[path][strings.ToLower(method)] = op.object(d.types, path, parameters, failure)
}

// whole returns the document, and the types for which it has no schema.
func (d *document) whole() (whole map[string]any, unknown []string) {
	whole = map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "ingot", "version": d.version,
			"description": "Serves models with the APIs of Ollama, OpenAI and Anthropic. " +
				"Unknown members of requests are ignored.",
		},
		"paths": d.paths,
		"components": map[string]any{
			"schemas": d.types.components,
			"securitySchemes": map[string]any{
				"bearer": map[string]any{"type": "http", "scheme": "bearer"},
				"key":    map[string]any{"type": "apiKey", "in": "header", "name": "X-Api-Key"},
			},
		},
		"security": []any{map[string]any{}, map[string]any{"bearer": []string{}}, map[string]any{"key": []string{}}},
	}
	return whole, d.types.unknown
}

// pathOf converts a net/http pattern to an OpenAPI path and its parameters.
func pathOf(path string) (string, []any) {
	var parameters []any
	parts := strings.Split(strings.ReplaceAll(path, "{$}", ""), "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		name := strings.TrimSuffix(strings.Trim(part, "{}"), "...")
		p := map[string]any{"name": name, "in": "path", "required": true, "schema": schema{"type": "string"}}
		if strings.Contains(part, "...") {
			p["description"] = "May contain slashes, unescaped."
		}
		parts[i] = "{" + name + "}"
		parameters = append(parameters, p)
	}
	return strings.Join(parts, "/"), parameters
}

// object returns the operation object.
func (op operation) object(types *schemas, path string, parameters []any, failure any) map[string]any {
	media := func(kind string, s schema) map[string]any { return map[string]any{kind: map[string]any{"schema": s}} }
	content := map[string]any{}
	switch {
	case op.media == anyType:
		content = media(anyType, schema{})
	case op.media != "":
		content = media(op.media, schema{"type": "string"})
	case op.response != nil:
		content = media("application/json", types.of(op.response, true))
	}
	if op.stream != nil {
		kind := ndjsonType
		if strings.HasPrefix(path, "/v1/") {
			kind = sseType
		}
		content[kind] = map[string]any{"schema": types.of(op.stream, true)} // the schema of each message
	}
	ok := map[string]any{
		"description": "Success. Each message of a stream has this schema; if it fails, the last one is an error.",
	}
	if op.stream == nil {
		ok["description"] = "Success."
	}
	if len(content) > 0 {
		ok["content"] = content
	}
	failed := types.of(reflect.TypeOf(failure), true)
	out := map[string]any{
		"summary": op.summary,
		"responses": map[string]any{
			"200":     ok,
			"default": map[string]any{"description": "An error.", "content": media("application/json", failed)},
		},
	}
	if op.created {
		out["responses"].(map[string]any)["201"] = map[string]any{"description": "Created: the file is new."}
	}
	if op.file {
		out["requestBody"] = map[string]any{"required": true, "content": media(anyType, schema{})}
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if op.request != nil {
		body := types.of(op.request, false)
		if len(op.required) > 0 {
			body = schema{"allOf": []schema{body}, "required": op.required}
		}
		out["requestBody"] = map[string]any{"required": true, "content": media("application/json", body)}
	}
	return out
}
