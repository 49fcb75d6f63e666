package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/value"
	"github.com/ingotml/ingot/internal/limits"
)

type derivedKey struct {
	of   *value.Value
	name string
}

// partKey identifies what a schema says about properties.
type partKey struct {
	schema *value.Value
	in     *document.Resource
	outer  string
}

type compiler struct {
	ctx        context.Context
	doc        *document.Document
	json       *jsontext.Rules
	made       map[string]*made      // by conjunction's key
	once       map[string]*expr.Expr // shared exprs by key, see shared
	derived    map[derivedKey]*value.Value
	empties    map[string]bool // by conjunction's key: provably without values; false also while it is examined
	patterns   map[string]*dfa.DFA
	parts      map[partKey]objectPart
	resources  []*document.Resource
	isDynamic  bool // the document has references that depend on the way to them
	strict     bool
	bestEffort bool
	leftOut    []string
	orders     [][]string
	narrowed   bool // ways to satisfy a negation were left out
	nameStates int  // states of the automata of unlisted names
	work       int
	err        error
}

func newCompiler(ctx context.Context, root *value.Value, rules *jsontext.Rules, refs map[string][]byte) *compiler {
	return &compiler{ctx: ctx, doc: document.New(root, refs), json: rules, made: map[string]*made{},
		once: map[string]*expr.Expr{}, derived: map[derivedKey]*value.Value{}, empties: map[string]bool{},
		patterns: map[string]*dfa.DFA{}, parts: map[partKey]objectPart{},
		isDynamic: len(refs) > 0 || root.Mentions("$dynamicRef") || root.Mentions("$recursiveRef") ||
			root.Mentions("$dynamicAnchor") || root.Mentions("$recursiveAnchor")}
}

func (c *compiler) rootTerm() term { return term{schema: c.doc.Root.Root, path: "#", in: c.doc.Root} }

// made is a compiled conjunction. rule is set once something calls it.
type made struct {
	rule *expr.Rule
	e    *expr.Expr // nil while it is compiled
}

// fail records the first error.
func (c *compiler) fail(kind error, path, format string, args ...any) {
	if c.err == nil {
		c.err = expr.Errorf(kind, "%s: "+format, append([]any{path}, args...)...)
	}
}

func (c *compiler) failAt(path string, err error) {
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("%s: %w", path, err)
	}
}

// unsupported records what the grammar cannot hold: as an error, or, with best effort, as left out.
func (c *compiler) unsupported(path, what string) {
	if !c.bestEffort {
		c.fail(expr.ErrUnsupported, path, "%s", what)
		return
	}
	if line := path + ": " + what; !slices.Contains(c.leftOut, line) {
		c.leftOut = append(c.leftOut, line)
	}
}

// step adds to the work done, and reports whether to continue.
func (c *compiler) step(work int, path string) bool {
	if c.err != nil {
		return false
	}
	if c.work += work; c.work > limits.GrammarSchemas {
		c.fail(expr.ErrLimit, path, "the schema unfolds to more than %d schemas", limits.GrammarSchemas)
	} else if err := c.ctx.Err(); err != nil {
		c.err = err
	}
	return c.err == nil
}

// shared returns the result of build as a rule that all callers with the same key share. work is the cost of build.
func (c *compiler) shared(key, path string, work int, build func() *expr.Expr) *expr.Expr {
	if e, ok := c.once[key]; ok {
		return e
	}
	if !c.step(work, path) {
		return expr.None
	}
	e := build()
	if !e.None() {
		e = expr.Call(&expr.Rule{Name: key, Body: e})
	}
	c.once[key] = e
	return e
}
