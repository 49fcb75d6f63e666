package grammar

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/limits"
)

// schemaExpr returns the values that a JSON schema allows.
func schemaExpr(ctx context.Context, source []byte) (*expr, error) {
	root, err := readValue(source)
	if err != nil {
		return nil, err
	}
	c := newSchemaCompiler(ctx, root, newJSONRules())
	e := c.compile(conjunction{{root, "#"}})
	if c.err != nil {
		return nil, c.err
	}
	if e.none() {
		return nil, failure(errInvalid, "no value satisfies the schema")
	}
	return e, nil
}

// inlineSchemas compiles schemas that stand in another source. They share one limit. The zero value works.
type inlineSchemas struct {
	json *jsonRules // shared by all schemas; nil before the first
	work int        // sum of the schemas' work so far
}

// compile compiles the schema at the beginning of source and returns its length. If no value satisfies the schema, the
// result matches nothing.
func (in *inlineSchemas) compile(ctx context.Context, source string) (e *expr, length int, err error) {
	d := json.NewDecoder(strings.NewReader(source))
	d.UseNumber()
	root, err := readNext(d, 0)
	if err != nil {
		return nil, 0, err
	}
	if in.json == nil {
		in.json = newJSONRules()
	}
	c := newSchemaCompiler(ctx, root, in.json)
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

type schemaCompiler struct {
	ctx  context.Context
	root *value
	json *jsonRules
	made map[string]*made // by conjunction's key
	once map[string]*expr // shared exprs by key, see shared
	work int
	err  error

	anchors map[string]*value // by name; nil before the first reference to an anchor
}

func newSchemaCompiler(ctx context.Context, root *value, rules *jsonRules) *schemaCompiler {
	return &schemaCompiler{ctx: ctx, root: root, json: rules, made: map[string]*made{}, once: map[string]*expr{}}
}

// made is a compiled conjunction. rule is set once something calls it.
type made struct {
	rule *rule
	e    *expr // nil while it is compiled
}

// fail records the first error.
func (c *schemaCompiler) fail(kind error, path, format string, args ...any) {
	if c.err == nil {
		c.err = failure(kind, "%s: "+format, append([]any{path}, args...)...)
	}
}

// step adds to the work done, and reports whether to continue.
func (c *schemaCompiler) step(work int, path string) bool {
	if c.err != nil {
		return false
	}
	if c.work += work; c.work > limits.GrammarSchemas {
		c.fail(errLimit, path, "the schema unfolds to more than %d schemas", limits.GrammarSchemas)
	} else if err := c.ctx.Err(); err != nil {
		c.err = err
	}
	return c.err == nil
}

// compile matches the values that satisfy all schemas.
func (c *schemaCompiler) compile(all conjunction) *expr {
	if !c.step(1, all.path()) {
		return noExpr
	}
	key := all.key()
	if m := c.made[key]; m != nil { // compiled before: share one rule unless it is small
		if m.rule == nil {
			if m.e != nil && (m.e.op == exprCall || m.e.op == exprText || m.e == boolean || m.e.none()) {
				return m.e
			}
			m.rule = &rule{name: all.path(), body: m.e}
		}
		return callExpr(m.rule)
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
		m.rule.body = e
		return callExpr(m.rule)
	}
	return e
}

// union matches the values of s. It combines each alternative of s with everything else that s requires.
func (c *schemaCompiler) union(s *shape, path string) *expr {
	if c.err != nil || s.types == 0 {
		return noExpr
	}
	if len(s.unions) == 0 {
		return c.expr(s, path)
	}
	first, rest := s.unions[0], s.unions[1:]
	if len(rest) == 0 && s.bare { // nothing but alternatives
		parts := make([]*expr, len(first))
		for i, b := range first {
			parts[i] = c.compile(conjunction{b})
		}
		return altExpr(parts...)
	}
	var parts []*expr
	for _, b := range first {
		if !c.step(1, path) {
			return noExpr
		}
		one := s.clone()
		one.unions = slices.Clone(rest)
		c.gather(one, b, nil)
		parts = append(parts, c.union(one, b.path))
	}
	return altExpr(parts...)
}

// expr matches the values of s, which has no alternatives.
func (c *schemaCompiler) expr(s *shape, path string) *expr {
	if s.consts != nil {
		var words []string
		for _, v := range *s.consts {
			if c.holds(s, v, path) {
				words = append(words, v.words()...)
			}
		}
		return wordsExpr(words)
	}
	var parts []*expr
	add := func(t typeSet, e func() *expr) {
		if s.types&t != 0 && c.err == nil {
			parts = append(parts, e())
		}
	}
	if s.types == anyType && s.free() {
		return c.json.value()
	}
	add(typeObject, func() *expr { return c.object(s, path) })
	add(typeArray, func() *expr { return c.array(s, path) })
	add(typeString, func() *expr { return c.text(s, path) })
	add(anyNumber, func() *expr { return c.number(s, path) })
	add(typeBoolean, func() *expr { return boolean })
	add(typeNull, func() *expr { return null })
	return altExpr(parts...)
}

// shared returns the result of build as a rule that all callers with the same key share. work is the cost of build.
func (c *schemaCompiler) shared(key, path string, work int, build func() *expr) *expr {
	if e, ok := c.once[key]; ok {
		return e
	}
	if !c.step(work, path) {
		return noExpr
	}
	e := build()
	if !e.none() {
		e = callExpr(&rule{name: key, body: e})
	}
	c.once[key] = e
	return e
}

// resolve returns the schema that a reference points to.
func (c *schemaCompiler) resolve(ref, path string) (located, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if id := c.root.get("$id"); !ok && id != nil && id.kind == typeString {
		fragment, ok = strings.CutPrefix(ref, strings.TrimSuffix(id.text, "#"))
		fragment, _ = strings.CutPrefix(fragment, "#")
	}
	if !ok {
		c.fail(errUnsupported, path, "$ref %q: only references within the schema (#...) are supported", ref)
		return located{}, false
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	at := c.root
	if fragment != "" && fragment[0] != '/' {
		if at = c.anchor(fragment); at == nil {
			c.fail(errInvalid, path, "$ref %q: no such anchor", ref)
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
			c.fail(errInvalid, path, "$ref %q: %q does not exist", ref, part)
			return located{}, false
		}
		at = next
	}
	return located{at, "#" + fragment}, true
}

// anchor returns the first schema with this $anchor, or nil.
func (c *schemaCompiler) anchor(name string) *value {
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
