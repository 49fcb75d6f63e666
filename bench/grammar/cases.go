package main

import (
	"context"

	"github.com/ingotml/ingot/grammar"
)

// benchCase is a grammar and a text of it.
type benchCase struct {
	name     string
	compile  func() (*grammar.Grammar, error)
	document string
}

func schema(s string) func() (*grammar.Grammar, error) {
	return func() (*grammar.Grammar, error) { return grammar.CompileSchema(context.Background(), []byte(s)) }
}

var cases = []benchCase{
	{"person", schema(`{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
		"email": {"type": "string", "format": "email"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name", "age", "email", "tags"], "additionalProperties": false}`),
		`{"name": "Ada Lovelace", "age": 36, "email": "ada.lovelace@example.com", "tags": ["mathematics", "analytical engine", "first of all \"programs\""]}`},
	{"order", schema(`{"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}, "date": {"type": "string", "format": "date-time"}, "status": {"enum": ["open", "paid", "shipped", "returned"]},
		"items": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"type": "object", "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4,8}$"}, "title": {"type": "string", "maxLength": 200},
		"price": {"type": "number", "minimum": 0}, "count": {"type": "integer", "minimum": 1, "maximum": 999}}, "required": ["sku", "title", "price", "count"]}},
		"note": {"type": ["string", "null"]}}, "required": ["id", "date", "status", "items", "note"], "additionalProperties": false}`),
		`{"id": "123e4567-e89b-12d3-a456-426614174000", "date": "2024-02-29T12:30:00Z", "status": "paid", "items": [{"sku": "AB-12345", "title": "A lamp made of old copper, with a shade of green glass", "price": 129.95, "count": 2}, {"sku": "ZZ-0001", "title": "Bulb", "price": 3, "count": 12}], "note": "Please ring twice; the dog is deaf."}`},
	{"tree", schema(`{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"tag": {"enum": ["div", "button", "field", "section"]}, "label": {"type": "string"},
		"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "attributes": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}, "required": ["name", "value"], "additionalProperties": false}}},
		"required": ["tag", "label", "children", "attributes"], "additionalProperties": false}}}`),
		`{"tag": "div", "label": "User profile form", "children": [{"tag": "field", "label": "First name", "children": [], "attributes": [{"name": "type", "value": "text"}]}, {"tag": "section", "label": "Buttons", "children": [{"tag": "button", "label": "Submit", "children": [], "attributes": []}], "attributes": [{"name": "class", "value": "row end"}]}], "attributes": []}`},
	{"calls", schema(`{"anyOf": [{"type": "object", "properties": {"name": {"const": "get_weather"}, "arguments": {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}}, "required": ["city"], "additionalProperties": false}}, "required": ["name", "arguments"], "additionalProperties": false},
		{"type": "object", "properties": {"name": {"const": "search"}, "arguments": {"type": "object", "properties": {"query": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "minimum": 1, "maximum": 100}}, "required": ["query"], "additionalProperties": false}}, "required": ["name", "arguments"], "additionalProperties": false}]}`),
		`{"name": "search", "arguments": {"query": "trains from Vienna to Ljubljana in the morning", "limit": 20}}`},
	{"open", schema(`{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"], "additionalProperties": {"type": ["string", "number", "boolean", "array"]}}`),
		`{"title": "Anything goes", "size": 12.5, "kind": "report", "final": true, "parts": [1, [2, {"deep": null}], "three"]}`},
	{"json", func() (*grammar.Grammar, error) { return grammar.JSONObject(), nil },
		`{"menu": {"id": "file", "value": "File", "popup": {"menuitem": [{"value": "New", "onclick": "CreateNewDoc()"}, {"value": "Open", "onclick": "OpenDoc()"}, {"value": "Größe \u00e9\n", "n": [-1.5e-7, 0, [[[]]]]}]}}}`},
	{"regex", func() (*grammar.Grammar, error) {
		return grammar.CompileRegex(context.Background(), `(Yes|No|Perhaps), because [A-Za-z ,;'-]{10,200}\.`)
	}, `Perhaps, because the second witness, who had nothing to win, told another story.`},
	{"ebnf", func() (*grammar.Grammar, error) {
		return grammar.CompileEBNF(context.Background(), `root ::= sum
sum ::= product (" " [+-] " " product)*
product ::= factor (" " [*/] " " factor)*
factor ::= number | name | "(" sum ")"
number ::= [0-9]+ ("." [0-9]+)?
name ::= [a-z_] [a-z0-9_]*`)
	}, `(alpha + 12.5) * (beta_2 - ((gamma / 3) + 4)) / delta`},
}
