package main

import (
	"context"
	"embed"
	"strings"

	"github.com/ingotml/ingot/grammar"
)

// benchCase is a grammar and a document that matches it.
type benchCase struct {
	name     string
	compile  func() (*grammar.Grammar, error)
	document string
}

// files has a document NAME.txt, and for schemas also NAME.schema.json.
//
//go:embed cases
var files embed.FS

func read(file string) string {
	b, err := files.ReadFile("cases/" + file)
	if err != nil {
		panic(err) // a case names a file that is not embedded
	}
	return strings.TrimSuffix(string(b), "\n")
}

func schema(name string) benchCase {
	text := []byte(read(name + ".schema.json"))
	return benchCase{name, func() (*grammar.Grammar, error) {
		return grammar.CompileSchema(context.Background(), text)
	}, read(name + ".txt")}
}

var cases = []benchCase{
	schema("person"), schema("order"), schema("tree"), schema("calls"), schema("open"),
	{"json", func() (*grammar.Grammar, error) { return grammar.JSONObject(), nil }, read("json.txt")},
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
