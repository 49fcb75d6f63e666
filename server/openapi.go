package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
)

// openAPI is GET /openapi.json: it returns the OpenAPI document.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", jsonType)
	b, err := s.openapi()
	if err != nil {
		return err
	}
	_, _ = w.Write(b) // fails only if the client has disconnected
	return nil
}

// openAPIJSON returns a function that builds the document on its first call.
func (s *Server) openAPIJSON() func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		d, _ := s.openAPIDocument()
		b, err := json.Marshal(d)
		return append(b, '\n'), err
	})
}

// openAPIDocument returns the document (https://spec.openapis.org/oas/v3.1.0), and the types for which it has no
// schema.
func (s *Server) openAPIDocument() (document map[string]any, unknown []string) {
	types := newSchemas(specialSchemas)
	paths := map[string]map[string]any{}
	for _, r := range s.list() {
		op, ok := operations[r.method+" "+r.path]
		if !ok {
			continue // a test reports the missing operation
		}
		path, parameters := openAPIPath(r.path)
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		if name, about, ok := strings.Cut(op.query, " "); ok {
			parameters = append(parameters,
				map[string]any{"name": name, "in": "query", "description": about, "schema": schema{"type": "string"}})
		}
		paths[path][strings.ToLower(r.method)] = op.openAPI(types, path, parameters)
	}
	document = map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "ingot", "version": s.opts.Version,
			"description": "Serves models with the APIs of Ollama, OpenAI and Anthropic. " +
				"Unknown members of requests are ignored.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas": types.components,
			"securitySchemes": map[string]any{
				"bearer": map[string]any{"type": "http", "scheme": "bearer"},
				"key":    map[string]any{"type": "apiKey", "in": "header", "name": "X-Api-Key"},
			},
		},
		"security": []any{map[string]any{}, map[string]any{"bearer": []string{}}, map[string]any{"key": []string{}}},
	}
	return document, types.unknown
}

// openAPIPath converts a net/http pattern to an OpenAPI path and its parameters.
func openAPIPath(path string) (string, []any) {
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

// openAPI returns the operation object.
func (op operation) openAPI(types *schemas, path string, parameters []any) map[string]any {
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
	_, failure := errorBody(path, apiError{})
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
