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
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/internal/limits"
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
	root, err := readValue(source)
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
	return Result{e, c.leftOut, c.orders, c.doc.root.dialect == draft4}, nil
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
	r := newReader([]byte(source))
	root, err := r.value(0)
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
	return e, r.Pos, c.err
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction // a number that is not an integer
	typeString
	typeArray
	typeObject

	anyNumber = typeInteger | typeFraction
	anyType   = typeNull | typeBoolean | anyNumber | typeString | typeArray | typeObject
)

var typeNames = map[string]typeSet{"null": typeNull, "boolean": typeBoolean, "integer": typeInteger,
	"number": anyNumber,
	"string": typeString, "array": typeArray, "object": typeObject}

type compiler struct {
	ctx        context.Context
	doc        *document
	json       *jsontext.Rules
	made       map[string]*made      // by conjunction's key
	once       map[string]*expr.Expr // shared exprs by key, see shared
	derived    map[derivedKey]*value
	empties    map[string]bool // by conjunction's key: provably without values; false also while it is examined
	patterns   map[string]*dfa.DFA
	parts      map[partKey]objectPart
	resources  []*resource
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

func newCompiler(ctx context.Context, root *value, rules *jsontext.Rules, refs map[string][]byte) *compiler {
	return &compiler{ctx: ctx, doc: newDocument(root, refs), json: rules, made: map[string]*made{},
		once: map[string]*expr.Expr{}, derived: map[derivedKey]*value{}, empties: map[string]bool{},
		patterns: map[string]*dfa.DFA{}, parts: map[partKey]objectPart{},
		isDynamic: len(refs) > 0 || root.mentions("$dynamicRef") || root.mentions("$recursiveRef") ||
			root.mentions("$dynamicAnchor") || root.mentions("$recursiveAnchor")}
}

func (c *compiler) rootTerm() term { return term{schema: c.doc.root.root, path: "#", in: c.doc.root} }

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

// compile matches the values that satisfy all terms.
func (c *compiler) compile(all conjunction) *expr.Expr {
	if !c.step(1, all.path()) {
		return expr.None
	}
	key := all.key()
	if m := c.made[key]; m != nil { // compiled before: share one rule unless it is small
		if m.rule == nil {
			if m.e != nil && (m.e.Op == expr.OpCall || m.e.Op == expr.OpText || m.e == jsontext.Boolean || m.e.None()) {
				return m.e
			}
			m.rule = &expr.Rule{Name: all.path(), Body: m.e}
		}
		return expr.Call(m.rule)
	}
	m := &made{}
	c.made[key] = m
	e := c.union(c.shapeOf(all), all.path())
	m.e = e
	if m.rule != nil {
		m.rule.Body = e
		return expr.Call(m.rule)
	}
	return e
}

func (c *compiler) shapeOf(all conjunction) *shape {
	s := &shape{types: anyType}
	for _, t := range all {
		t.chain = nil
		c.add(s, t)
	}
	return s
}

// union matches the values of s. It combines each alternative of s with everything else that s requires.
func (c *compiler) union(s *shape, path string) *expr.Expr {
	if c.err != nil || s.types == 0 {
		return expr.None
	}
	if s.consts != nil {
		return c.constants(s)
	}
	c.absorb(s)
	if len(s.unions) == 0 && len(s.extras) == 0 {
		return c.expr(s, path)
	}
	if len(s.unions) == 1 && s.bare { // nothing but alternatives
		first := s.unions[0]
		parts := make([]*expr.Expr, len(first.parts))
		for i, t := range first.parts {
			all := conjunction{t}
			if first.one {
				all = append(all, c.others(&shape{types: anyType}, first.parts, i)...)
			}
			parts[i] = c.compile(all)
		}
		return expr.Alt(parts...)
	}
	if s.types == typeString && len(s.extras) == 0 { // alternatives of strings are one automaton
		before := c.err
		if d := c.textsOf(s, path, 0); d != nil && c.err == nil {
			return jsontext.Quoted(d.Expr())
		}
		if c.err = clearLimit(c.err); c.err != before {
			return expr.None
		}
	}
	var parts []*expr.Expr
	c.expand(s, func(one *shape) bool {
		if c.contradicts(one, 0) {
			return c.err == nil
		}
		parts = append(parts, c.union(one, path))
		return c.err == nil
	})
	return expr.Alt(parts...)
}

// expand calls use with each alternative of one union of s, combined with all else that s requires, until use returns
// false.
func (c *compiler) expand(s *shape, use func(*shape) bool) {
	if len(s.unions) == 0 {
		c.expandExtra(s, use)
		return
	}
	// A union with few alternatives first: it may settle the others.
	first := 0
	for i, u := range s.unions {
		if len(u.parts) < len(s.unions[first].parts) {
			first = i
		}
	}
	u := s.unions[first]
	rest := slices.Delete(slices.Clone(s.unions), first, first+1)
	for i, t := range u.parts {
		if !c.step(1, t.path) {
			return
		}
		one := s.clone()
		one.unions = slices.Clone(rest)
		if u.one {
			for _, o := range c.others(one, u.parts, i) {
				c.add(one, o)
			}
		}
		c.add(one, t)
		c.absorb(one)
		one.bare = false
		if c.err != nil || one.types != 0 && !use(one) {
			return
		}
	}
}

// others returns the negations of the alternatives that can hold together with the i-th one and s.
func (c *compiler) others(s *shape, parts []term, i int) (not []term) {
	for k, o := range parts {
		if k == i || c.err != nil || c.empty(conjunction{parts[i], o}, 0) {
			continue
		}
		if len(s.terms) == 0 {
			not = append(not, o.negated())
			continue
		}
		both := s.clone()
		both.terms = nil // the whole allows no value of both
		c.add(both, parts[i])
		c.add(both, o)
		if !c.contradicts(both, 0) {
			not = append(not, o.negated())
		}
	}
	return not
}

// expandExtra calls use with the ways to have a property that the schema of s.extras does not allow: one of the listed
// properties. Other names are left out: the result allows less.
func (c *compiler) expandExtra(s *shape, use func(*shape) bool) {
	c.narrowed = true
	rest, x := s.extras[1:], s.extras[0]
	names := c.members(s)
	for _, name := range names {
		for _, way := range x.ways(name) {
			one := s.clone()
			one.extras = rest
			one.require(name)
			one.objects = append(one.objects, objectPart{properties: map[string]term{name: way}, silent: true})
			if !use(one) {
				return
			}
		}
	}
}

// expr matches the values of s, which has no alternatives.
func (c *compiler) expr(s *shape, path string) *expr.Expr {
	var parts []*expr.Expr
	add := func(t typeSet, e func() *expr.Expr) {
		if s.types&t != 0 && c.err == nil {
			parts = append(parts, e())
		}
	}
	if s.types == anyType && s.free() {
		return c.json.Value()
	}
	add(typeObject, func() *expr.Expr { return c.object(s, path) })
	add(typeArray, func() *expr.Expr { return c.array(s, path) })
	add(typeString, func() *expr.Expr { return c.text(s, path) })
	add(anyNumber, func() *expr.Expr { return c.number(s, path) })
	add(typeBoolean, func() *expr.Expr {
		return expr.Words(slices.DeleteFunc([]string{"true", "false"}, func(w string) bool { return s.bars(w) }))
	})
	if !s.bars("null") {
		add(typeNull, func() *expr.Expr { return jsontext.Null })
	}
	return expr.Alt(parts...)
}

// bars reports whether s excludes a boolean or null.
func (s *shape) bars(word string) bool {
	return slices.ContainsFunc(s.barred, func(v *value) bool {
		return v.kind&(typeBoolean|typeNull) != 0 && string(v.dump(nil, false)) == word
	})
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
