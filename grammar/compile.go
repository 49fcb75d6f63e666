package grammar

import (
	"context"

	"github.com/ingotml/ingot/grammar/ebnf"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/lark"
	"github.com/ingotml/ingot/grammar/refs"
	"github.com/ingotml/ingot/grammar/regex"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/grammar/tags"
)

// SchemaOptions are the options of a schema's compilation. The zero value follows the specification.
type SchemaOptions = schema.Options

// SchemaRefs reads the schemas of a folder, for SchemaOptions.Refs: each .json file by the address of the folder, which
// ends with a slash or is empty, and the file's path in it; and by its own $id.
func SchemaRefs(folder, address string) (map[string][]byte, error) {
	return refs.Folder(folder, address)
}

// CompileSchema compiles a JSON schema of drafts 4 to 2020-12, or of OpenAPI, with the zero SchemaOptions. See
// CompileSchemaWith.
func CompileSchema(ctx context.Context, source []byte) (*Grammar, error) {
	return CompileSchemaWith(ctx, source, SchemaOptions{})
}

// CompileSchemaWith compiles a JSON schema. $schema chooses the draft; without it, draft 2020-12 holds, with the
// equivalents of older drafts and of OpenAPI. docs/structured-output.md lists the keywords. What a grammar cannot hold
// exactly is ErrUnsupported, with the keyword and its location as a JSON pointer. Keywords that the specification does
// not have are ignored, as it says, unless the options are strict.
//
// The grammar may allow less than the schema, never more, except with best effort: see LeftOut. Properties come in the
// schema's order, then others. If ctx is canceled, CompileSchemaWith returns its error.
func CompileSchemaWith(ctx context.Context, source []byte, o SchemaOptions) (*Grammar, error) {
	r, err := schema.Compile(ctx, source, o)
	if err != nil {
		return nil, err
	}
	g, err := newGrammar(ctx, r.Expr)
	if err != nil {
		return nil, err
	}
	g.orders, g.leftOut, g.spelled = r.Orders, r.LeftOut, r.Spelled
	return g, nil
}

// CompileEBNF compiles an EBNF grammar. The start rule is the one named root, otherwise the first. Rules have the form
//
//	name ::= "literal" 'literal' [a-z] [^"] . name (group) a | b  x? x* x+ x{2} x{2,} x{2,5}
//
// and end where the next rule's name begins; # begins a comment. %json followed by a JSON schema matches the values
// that the schema allows, as in CompileSchema; references resolve within that schema. "=" may replace "::=", and ";"
// may end a rule. Literals and classes have the escapes \n \r \t \\ \" \' \] \[ \- \^ \xHH \uHHHH and \UHHHHHHHH.
// A token terminal matches one token whatever its text is: <think> by its name, <[10]> by its id, !<think> any other
// token. Characters are Unicode code points; a dot matches all but a newline. Rules may be recursive. Left
// recursion becomes repetition; behind a part that may be empty it is ErrUnsupported. If ctx is canceled,
// CompileEBNF returns its error.
func CompileEBNF(ctx context.Context, source string) (*Grammar, error) {
	return CompileEBNFWith(ctx, source, SchemaOptions{})
}

// CompileEBNFWith is CompileEBNF with options for the schemas in the grammar.
func CompileEBNFWith(ctx context.Context, source string, o SchemaOptions) (*Grammar, error) {
	return withLeftOut(ctx)(ebnf.Compile(ctx, source, o))
}

// CompileLark compiles a grammar in the variant of Lark's syntax that LLGuidance reads: see package lark. The longest
// lexeme counts, so a text near its budget may not be completed within it. If ctx is canceled, CompileLark returns its
// error. The options are for the schemas in the grammar.
func CompileLark(ctx context.Context, source string, o SchemaOptions) (*Grammar, error) {
	return withLeftOut(ctx)(lark.Compile(ctx, source, o))
}

// CompileTags compiles a structural tag as XGrammar has them: see package tags. If ctx is canceled, CompileTags returns
// its error. The options are for the schemas in the tags.
func CompileTags(ctx context.Context, source []byte, o SchemaOptions) (*Grammar, error) {
	return withLeftOut(ctx)(tags.Compile(ctx, source, o))
}

func withLeftOut(ctx context.Context) func(*expr.Expr, []string, error) (*Grammar, error) {
	return func(e *expr.Expr, leftOut []string, err error) (*Grammar, error) {
		if err != nil {
			return nil, err
		}
		g, err := newGrammar(ctx, e)
		if err != nil {
			return nil, err
		}
		g.leftOut = leftOut
		return g, nil
	}
}

// CompileRegex compiles a regular expression that must match the whole text. The syntax is RE2's, as in package regexp,
// over UTF-8. Anchors are allowed at the ends only. Word boundaries and everything that RE2 leaves out are
// ErrUnsupported. Greediness of a repetition makes no difference. If ctx is canceled, CompileRegex returns its error.
func CompileRegex(ctx context.Context, pattern string) (*Grammar, error) {
	e, err := regex.Compile(pattern, expr.UTF8, false)
	if err != nil {
		return nil, err
	}
	return newGrammar(ctx, e)
}

// JSON returns the grammar of all JSON values.
func JSON() *Grammar {
	return must(newGrammar(context.Background(), jsontext.NewRules().Value()))
}

// JSONObject returns the grammar of all JSON objects. It implements the APIs' JSON mode.
func JSONObject() *Grammar {
	return must(newGrammar(context.Background(), jsontext.NewRules().Object()))
}

// must unwraps grammars that are constants of this package.
func must(g *Grammar, err error) *Grammar {
	if err != nil {
		panic(err)
	}
	return g
}
