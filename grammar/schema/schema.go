// Package schema compiles JSON schemas of drafts 4 to 2020-12 to expressions over bytes.
//
// A schema is a conjunction of terms. gather merges them into a shape: the constraints of each JSON type, and unions of
// which one alternative must hold. Negation is pushed down to single keywords, so every keyword becomes constraints and
// unions. Shapes without unions compile type by type: strings, names and numbers as automata over their characters,
// which intersect and complement exactly, objects and arrays as sequences of members and items.
//
// Contract: the result may allow less than the schema, never more. A keyword that an expression cannot express is
// ErrUnsupported, with its name and location as a JSON pointer, or, with Options.BestEffort, enforced in part and
// listed in Result. The work is bounded by limits.GrammarSchemas; a canceled context ends it.
package schema

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/value"
)

// Options of a compilation. The zero value follows the specification.
type Options struct {
	// Strict refuses keywords that the specification does not have, except those that begin with x-.
	Strict bool
	// BestEffort leaves out what cannot be held exactly, instead of refusing the schema. The result may then allow more
	// than the schema.
	BestEffort bool
	// Refs are schemas that a $ref may lead to, by their absolute URI or by their address relative to a schema without
	// $id. Nothing is ever fetched.
	Refs map[string][]byte
}

// Result is a compiled schema.
type Result struct {
	Expr *expr.Expr
	// LeftOut says what BestEffort left out, each with its location; empty if the result holds the schema exactly.
	LeftOut []string
	// Orders are the lists of properties that objects have, in the order of their texts.
	Orders [][]string
	// Spelled reports whether 1.0 is not an integer, as in draft 4: a number's spelling then matters.
	Spelled bool
}

// Compile returns the values that a JSON schema allows.
func Compile(ctx context.Context, source []byte, o Options) (Result, error) {
	root, err := value.Read(source)
	if err != nil {
		return Result{}, err
	}
	c := newCompiler(ctx, root, jsontext.NewRules(), o.Refs)
	c.strict, c.bestEffort = o.Strict, o.BestEffort
	e := c.compile(conjunction{c.rootTerm()})
	if c.err != nil {
		return Result{}, c.err
	}
	switch {
	case e.None() && c.narrowed:
		return Result{}, expr.Errorf(expr.ErrUnsupported, "not or an overlapping oneOf asks for properties that the schema "+
			"does not list")
	case e.None():
		return Result{}, expr.ErrEmpty
	}
	return Result{e, c.leftOut, c.orders, c.doc.Root.Dialect == document.Draft4}, nil
}

// Inline compiles schemas that stand in another source. They share one limit. The zero value works.
type Inline struct {
	Options Options
	LeftOut []string // as Result.LeftOut, of all schemas so far

	json *jsontext.Rules // shared by all schemas; nil before the first
	work int             // sum of the schemas' work so far
}

// Compile compiles the schema at the beginning of source and returns its length. If no value satisfies the schema, the
// result matches nothing.
func (in *Inline) Compile(ctx context.Context, source string) (e *expr.Expr, length int, err error) {
	root, length, err := value.ReadPrefix(source)
	if err != nil {
		return nil, 0, err
	}
	if in.json == nil {
		in.json = jsontext.NewRules()
	}
	c := newCompiler(ctx, root, in.json, nil)
	c.work, c.strict, c.bestEffort = in.work, in.Options.Strict, in.Options.BestEffort
	e = c.compile(conjunction{c.rootTerm()})
	in.work = c.work
	for _, what := range c.leftOut {
		if !slices.Contains(in.LeftOut, what) {
			in.LeftOut = append(in.LeftOut, what)
		}
	}
	return e, length, c.err
}
