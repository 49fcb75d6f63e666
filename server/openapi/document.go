package openapi

import (
	"maps"
	"reflect"
	"strings"

	"github.com/ingotml/ingot/server/wire"
)

// Document collects operations. See https://spec.openapis.org/oas/v3.1.0.
type Document struct {
	version string // of the program
	types   *Schemas
	paths   map[string]map[string]any
}

// New returns a document without operations. special are the schemas of types with their own JSON methods.
func New(version string, special Special) *Document {
	return &Document{version: version, types: newSchemas(special), paths: map[string]map[string]any{}}
}

// Add adds the operation of a route, in the form of net/http's patterns. failure is a value of the type of its errors.
func (d *Document) Add(method, pattern string, op Operation, failure any) {
	path, parameters := PathOf(pattern)
	if d.paths[path] == nil {
		d.paths[path] = map[string]any{}
	}
	for line := range strings.Lines(op.Query) {
		name, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		parameters = append(parameters,
			map[string]any{"name": name, "in": "query", "description": about, "schema": Schema{"type": "string"}})
	}
	if op.Header != "" {
		parameters = append(parameters, map[string]any{"name": op.Header, "in": "header",
			"description": "Chooses: " + op.Summary, "schema": Schema{"type": "string"}})
	}
	method = strings.ToLower(method)
	one := op.object(d.types, path, parameters, failure)
	if other, shared := d.paths[path][method].(map[string]any); shared {
		one = either(other, one, op.Header != "")
	}
	d.paths[path][method] = one
}

// either returns the operation of a route that two APIs share. It has the summary of the one that needs no header.
func either(a, b map[string]any, second bool) map[string]any {
	if second {
		a, b = b, a
	}
	out := maps.Clone(b)
	responses := map[string]any{}
	of := func(o map[string]any, status string) map[string]any {
		return o["responses"].(map[string]any)[status].(map[string]any)
	}
	schema := func(o map[string]any, status string) any {
		return of(o, status)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
	}
	for _, status := range []string{"200", "default"} {
		responses[status] = map[string]any{"description": of(b, status)["description"],
			"content": map[string]any{"application/json": map[string]any{
				"schema": Schema{"anyOf": []any{schema(a, status), schema(b, status)}}}}}
	}
	out["responses"] = responses
	list, _ := a["parameters"].([]any) // has those of the path, too
	out["parameters"] = list
	return out
}

// Whole returns the document, and the types for which it has no schema.
func (d *Document) Whole() (whole map[string]any, unknown []string) {
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

// PathOf converts a net/http pattern to an OpenAPI path and its parameters.
func PathOf(path string) (string, []any) {
	var parameters []any
	parts := strings.Split(strings.ReplaceAll(path, "{$}", ""), "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		name := strings.TrimSuffix(strings.Trim(part, "{}"), "...")
		p := map[string]any{"name": name, "in": "path", "required": true, "schema": Schema{"type": "string"}}
		if strings.Contains(part, "...") {
			p["description"] = "May contain slashes, unescaped."
		}
		parts[i] = "{" + name + "}"
		parameters = append(parameters, p)
	}
	return strings.Join(parts, "/"), parameters
}

// object returns the operation object.
func (op Operation) object(types *Schemas, path string, parameters []any, failure any) map[string]any {
	media := func(kind string, s Schema) map[string]any { return map[string]any{kind: map[string]any{"schema": s}} }
	content := map[string]any{}
	switch {
	case op.Media == wire.AnyType:
		content = media(wire.AnyType, Schema{})
	case op.Media != "":
		content = media(op.Media, Schema{"type": "string"})
	case op.Response != nil:
		content = media("application/json", types.Of(op.Response, true))
	}
	if op.Stream != nil {
		kind := wire.LinesType
		if strings.HasPrefix(path, "/v1/") {
			kind = wire.EventsType
		}
		content[kind] = map[string]any{"schema": types.Of(op.Stream, true)} // the schema of each message
	}
	ok := map[string]any{
		"description": "Success. Each message of a stream has this schema; if it fails, the last one is an error. " +
			"Comments of events, and messages without content, keep a silent stream alive.",
	}
	if op.Stream == nil {
		ok["description"] = "Success."
	}
	if len(content) > 0 {
		ok["content"] = content
	}
	failed := types.Of(reflect.TypeOf(failure), true)
	out := map[string]any{
		"summary": op.Summary,
		"responses": map[string]any{
			"200":     ok,
			"default": map[string]any{"description": "An error.", "content": media("application/json", failed)},
		},
	}
	if op.Created {
		out["responses"].(map[string]any)["201"] = map[string]any{"description": "Created: the file is new."}
	}
	if op.File && op.Form == nil {
		out["requestBody"] = map[string]any{"required": true, "content": media(wire.AnyType, Schema{})}
	}
	if op.Form != nil {
		parts := Schema{"file": Schema{"type": "string", "contentMediaType": "application/octet-stream"}}
		for _, name := range op.Form {
			parts[name] = Text
		}
		form := Schema{"type": "object", "properties": parts, "required": []string{"file"}}
		out["requestBody"] = map[string]any{"required": true, "content": media("multipart/form-data", form)}
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if op.Request != nil {
		body := types.Of(op.Request, false)
		if len(op.Required) > 0 {
			body = Schema{"allOf": []Schema{body}, "required": op.Required}
		}
		out["requestBody"] = map[string]any{"required": true, "content": media("application/json", body)}
	}
	return out
}
