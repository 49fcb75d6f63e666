// Package schema compiles JSON schemas to expressions over bytes.
//
// Contract: the result may allow less than the schema, never more. A keyword that an expression cannot express is
// ErrUnsupported, with its name and location as a JSON pointer. The work is bounded by limits.GrammarSchemas; a
// canceled context ends it.
package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/limits"
)

// Compile returns the values that a JSON schema allows.
func Compile(ctx context.Context, source []byte) (*expr.Expr, error) {
	root, err := readValue(source)
	if err != nil {
		return nil, err
	}
	c := newCompiler(ctx, root, jsontext.NewRules())
	e := c.compile(conjunction{{root, "#"}})
	if c.err != nil {
		return nil, c.err
	}
	if e.None() {
		return nil, expr.Errorf(expr.ErrInvalid, "no value satisfies the schema")
	}
	return e, nil
}

// Inline compiles schemas that stand in another source. They share one limit. The zero value works.
type Inline struct {
	json *jsontext.Rules // shared by all schemas; nil before the first
	work int             // sum of the schemas' work so far
}

// Compile compiles the schema at the beginning of source and returns its length. If no value satisfies the schema, the
// result matches nothing.
func (in *Inline) Compile(ctx context.Context, source string) (e *expr.Expr, length int, err error) {
	d := json.NewDecoder(strings.NewReader(source))
	d.UseNumber()
	root, err := readNext(d, 0)
	if err != nil {
		return nil, 0, err
	}
	if in.json == nil {
		in.json = jsontext.NewRules()
	}
	c := newCompiler(ctx, root, in.json)
	c.work = in.work
	e = c.compile(conjunction{{root, "#"}})
	in.work = c.work
	return e, int(d.InputOffset()), c.err
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

// located is a schema and its location.
type located struct {
	schema *value
	path   string
}

// conjunction is a list of schemas that a value must all satisfy.
type conjunction []located

func (c conjunction) path() string {
	if len(c) == 0 {
		return "#"
	}
	return c[0].path
}

// key identifies the set of schemas of a conjunction.
func (c conjunction) key() string {
	parts := make([]string, len(c))
	for i, l := range c {
		parts[i] = fmt.Sprintf("%p", l.schema)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}

type compiler struct {
	ctx  context.Context
	root *value
	json *jsontext.Rules
	made map[string]*made      // by conjunction's key
	once map[string]*expr.Expr // shared exprs by key, see shared
	work int
	err  error

	anchors map[string]*value // by name; nil before the first reference to an anchor
}

func newCompiler(ctx context.Context, root *value, rules *jsontext.Rules) *compiler {
	return &compiler{ctx: ctx, root: root, json: rules, made: map[string]*made{}, once: map[string]*expr.Expr{}}
}

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

// compile matches the values that satisfy all schemas.
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
	var s shape
	s.types = anyType
	for _, l := range all {
		c.gather(&s, l, nil)
	}
	e := c.union(&s, all.path())
	m.e = e
	if m.rule != nil {
		m.rule.Body = e
		return expr.Call(m.rule)
	}
	return e
}

// union matches the values of s. It combines each alternative of s with everything else that s requires.
func (c *compiler) union(s *shape, path string) *expr.Expr {
	if c.err != nil || s.types == 0 {
		return expr.None
	}
	if len(s.unions) == 0 {
		return c.expr(s, path)
	}
	first, rest := s.unions[0], s.unions[1:]
	if len(rest) == 0 && s.bare { // nothing but alternatives
		parts := make([]*expr.Expr, len(first))
		for i, b := range first {
			parts[i] = c.compile(conjunction{b})
		}
		return expr.Alt(parts...)
	}
	var parts []*expr.Expr
	for _, b := range first {
		if !c.step(1, path) {
			return expr.None
		}
		one := s.clone()
		one.unions = slices.Clone(rest)
		c.gather(one, b, nil)
		parts = append(parts, c.union(one, b.path))
	}
	return expr.Alt(parts...)
}

// expr matches the values of s, which has no alternatives.
func (c *compiler) expr(s *shape, path string) *expr.Expr {
	if s.consts != nil {
		var words []string
		for _, v := range *s.consts {
			if c.holds(s, v, path) {
				words = append(words, v.words()...)
			}
		}
		return expr.Words(words)
	}
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
	add(typeBoolean, func() *expr.Expr { return jsontext.Boolean })
	add(typeNull, func() *expr.Expr { return jsontext.Null })
	return expr.Alt(parts...)
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

// resolve returns the schema that a reference points to.
func (c *compiler) resolve(ref, path string) (located, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if id := c.root.get("$id"); !ok && id != nil && id.kind == typeString {
		fragment, ok = strings.CutPrefix(ref, strings.TrimSuffix(id.text, "#"))
		fragment, _ = strings.CutPrefix(fragment, "#")
	}
	if !ok {
		c.fail(expr.ErrUnsupported, path, "$ref %q: only references within the schema (#...) are supported", ref)
		return located{}, false
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	at := c.root
	if fragment != "" && fragment[0] != '/' {
		if at = c.anchor(fragment); at == nil {
			c.fail(expr.ErrInvalid, path, "$ref %q: no such anchor", ref)
			return located{}, false
		}
		return located{at, ref}, true
	}
	for _, part := range strings.Split(fragment, "/")[min(1, len(fragment)):] {
		if fragment == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var next *value
		if at.kind == typeArray {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.items) {
				next = at.items[i]
			}
		} else {
			next = at.get(part)
		}
		if next == nil {
			c.fail(expr.ErrInvalid, path, "$ref %q: %q does not exist", ref, part)
			return located{}, false
		}
		at = next
	}
	return located{at, "#" + fragment}, true
}

// anchor returns the first schema with this $anchor, or nil.
func (c *compiler) anchor(name string) *value {
	if c.anchors == nil {
		c.anchors = map[string]*value{}
		var visit func(v *value)
		visit = func(v *value) {
			if a := v.get("$anchor"); a != nil && a.kind == typeString && c.anchors[a.text] == nil {
				c.anchors[a.text] = v
			}
			for _, item := range v.items {
				visit(item)
			}
		}
		visit(c.root)
	}
	return c.anchors[name]
}

// bound is one end of a range of numbers.
type bound struct {
	value     *big.Rat
	exclusive bool
}

func (b *bound) String() string {
	if b == nil {
		return "none"
	}
	return fmt.Sprint(b.value, b.exclusive)
}
