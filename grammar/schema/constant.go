package schema

import (
	"math/big"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/value"
)

// constants matches the constants of s that satisfy all its terms.
func (c *compiler) constants(s *shape) *expr.Expr {
	var words []string
	var parts []*expr.Expr
	for _, v := range *s.consts {
		if !c.holds(s, v) {
			continue
		}
		if v.Kind == value.Array || v.Kind == value.Object {
			parts = append(parts, value.Expr(v))
		} else {
			words = append(words, v.Spellings()...)
		}
	}
	return expr.Alt(append(parts, expr.Words(words))...)
}

// holds reports whether a constant satisfies the terms of s.
func (c *compiler) holds(s *shape, v *value.Value) bool {
	if len(s.barred)+len(s.unions)+len(s.extras) == 0 && s.freeNumbers() && s.freeStrings() && s.freeObjects() &&
		s.freeArrays() && v.Kind != value.AnyNumber {
		return s.types&v.Kind != 0 // nothing but constants
	}
	for _, t := range s.terms {
		if !c.valid(t, v) {
			return false
		}
	}
	return true
}

// evaluated are the parts of a value that schemas say something about.
type evaluated struct {
	names map[string]bool
	items map[int]bool
}

func (e *evaluated) merge(o *evaluated) {
	for n := range o.names {
		e.names[n] = true
	}
	for i := range o.items {
		e.items[i] = true
	}
}

func newEvaluated() *evaluated { return &evaluated{map[string]bool{}, map[int]bool{}} }

// valid reports whether a constant satisfies a term.
func (c *compiler) valid(t term, v *value.Value) bool {
	if t.only != "" { // a negated keyword: exact for one keyword as a schema of its own
		t.schema = c.derive(t.schema, "only\x00"+t.only, func() *value.Value { return onlyKeyword(t.schema, t.only) })
		t.only = ""
	}
	return c.validate(t, v, newEvaluated()) != t.not
}

// onlyKeyword returns the schema with one keyword and those that belong to it.
func onlyKeyword(schema *value.Value, keyword string) *value.Value {
	keep := []string{keyword}
	switch keyword {
	case "if":
		keep = append(keep, "then", "else")
	case "contains":
		keep = append(keep, "minContains", "maxContains")
	case "minimum", "exclusiveMinimum":
		keep = []string{"minimum", "exclusiveMinimum"}
	case "maximum", "exclusiveMaximum":
		keep = []string{"maximum", "exclusiveMaximum"}
	case "type":
		keep = append(keep, "nullable")
	}
	out := &value.Value{Kind: value.Object}
	for i, k := range schema.Keys {
		if slices.Contains(keep, k) {
			out.Keys, out.Items = append(out.Keys, k), append(out.Items, schema.Items[i])
		}
	}
	return out
}

// validate reports whether a constant satisfies a schema, and notes what the schema evaluates.
func (c *compiler) validate(t term, v *value.Value, seen *evaluated) bool {
	if !c.step(1, t.path) {
		return false
	}
	t.in = c.doc.ResourceOf(t.schema, t.in)
	t.outer = c.enter(t.outer, t.in)
	t.not = false
	switch t.schema.Kind {
	case value.Boolean:
		return t.schema.Truth
	case value.Object:
	default:
		c.fail(expr.ErrInvalid, t.path, "a schema must be an object or a boolean")
		return false
	}
	if len(t.path) > 1<<14 {
		c.fail(expr.ErrLimit, t.path[:100], "references nest too deep")
		return false
	}
	// What has no meaning beyond merging is checked on a shape of this schema alone.
	var s shape
	s.types = value.AnyType
	alone := t.in.Dialect.RefAlone() && t.schema.Get("$ref") != nil
	var late []string
	for i, k := range t.schema.Keys {
		if !c.applies(t, k) || alone && k != "$ref" {
			continue
		}
		item := t.schema.Items[i]
		if combines[k] {
			if !c.validCombination(t, k, item, v, seen) {
				return false
			}
			continue
		}
		if k == "unevaluatedProperties" || k == "unevaluatedItems" {
			late = append(late, k)
			continue
		}
		keywords[k](c, &s, item, t)
	}
	if !alone {
		c.gatherParts(&s, t)
	}
	if c.err != nil || !c.validShape(&s, v, seen, t.path) {
		return false
	}
	for _, k := range late {
		rest := t.sub(t.schema.Get(k), "/"+k)
		for i, item := range v.Items {
			if k == "unevaluatedProperties" && v.Kind == value.Object && !seen.names[v.Keys[i]] {
				seen.names[v.Keys[i]] = true
			} else if k == "unevaluatedItems" && v.Kind == value.Array && !seen.items[i] {
				seen.items[i] = true
			} else {
				continue
			}
			if !c.validate(rest, item, newEvaluated()) {
				return false
			}
		}
	}
	return true
}

// combines are the keywords that apply schemas to the same value.
var combines = value.SetOf([]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
	"$recursiveRef", "dependentRequired", "dependentSchemas", "dependencies"})

// validCombination is validate for one keyword of combines.
func (c *compiler) validCombination(t term, keyword string, item, v *value.Value, seen *evaluated) bool {
	holds := func(schema *value.Value) bool {
		mine := newEvaluated()
		ok := c.validate(t.same(schema, ""), v, mine)
		if ok {
			seen.merge(mine)
		}
		return ok
	}
	matching := 0
	switch keyword {
	case "not":
		return !c.validate(t.same(item, "/not"), v, newEvaluated())
	case "then", "else":
		return true
	case "if":
		next := "else"
		if holds(item) {
			next = "then"
		}
		schema := t.schema.Get(next)
		return schema == nil || holds(schema)
	case "$ref", "$dynamicRef", "$recursiveRef":
		to, ok := c.target(item.Text, t)
		to.path = t.path + "/"
		return ok && c.validate(to, v, seen)
	case "dependentRequired", "dependentSchemas", "dependencies":
		var s shape
		c.gatherDependencies(&s, item, t)
		for _, u := range s.unions {
			if !slices.ContainsFunc(u.parts, func(p term) bool { return holds(p.schema) }) {
				return false
			}
		}
		return true
	}
	for _, schema := range item.Items {
		if holds(schema) {
			matching++
		}
	}
	switch keyword {
	case "anyOf":
		return matching > 0
	case "oneOf":
		return matching == 1
	}
	return matching == len(item.Items)
}

// validShape reports whether a constant satisfies a shape without unions.
func (c *compiler) validShape(s *shape, v *value.Value, seen *evaluated, path string) bool {
	if s.consts != nil && !slices.ContainsFunc(*s.consts, v.Equal) {
		return false
	}
	kind := v.Kind
	var r *big.Rat
	if kind == value.AnyNumber {
		var ok bool
		if r, ok = c.rational(v, path); !ok {
			return false
		}
		kind = value.Fraction
		if r.IsInt() {
			kind = value.Integer
		}
	}
	if s.types&kind == 0 {
		return false
	}
	switch v.Kind {
	case value.AnyNumber:
		return s.numbers.Holds(r)
	case value.String:
		return c.validText(s, v.Text, path)
	case value.Array:
		return c.validArray(s, v, seen, path)
	case value.Object:
		return c.validObject(s, v, seen, path)
	}
	return true
}

func (c *compiler) validText(s *shape, text, path string) bool {
	n := len([]rune(text))
	if n < s.strings.minLength || s.strings.maxLength != nil && n > *s.strings.maxLength {
		return false
	}
	for _, p := range s.strings.patterns {
		d := c.textPattern(p, path)
		if c.err == nil && !d.Knows(n) {
			c.fail(expr.ErrLimit, path, "the constant %q is too long for a pattern of too many states", expr.Clip(text))
		}
		if c.err != nil || d.Match(text) == p.negated {
			return false
		}
	}
	return true
}

func (c *compiler) validArray(s *shape, v *value.Value, seen *evaluated, path string) bool {
	if len(v.Items) < s.minItems || s.maxItems != nil && len(v.Items) > *s.maxItems || s.unique && !v.Unique() {
		return false
	}
	for i, item := range v.Items {
		for _, a := range s.arrays {
			of := a.others
			if i < len(a.prefix) {
				of = &a.prefix[i]
			}
			if of == nil {
				continue
			}
			if seen.items[i] = true; !c.validate(*of, item, newEvaluated()) {
				return false
			}
		}
	}
	for _, p := range s.contains {
		n := 0
		for i, item := range v.Items {
			if c.validate(p.term, item, newEvaluated()) {
				n++
				seen.items[i] = true
			}
		}
		if n < p.least || p.most >= 0 && n > p.most {
			return false
		}
	}
	return true
}

func (c *compiler) validObject(s *shape, v *value.Value, seen *evaluated, path string) bool {
	if len(v.Keys) < s.minMembers || s.maxMembers != nil && len(v.Keys) > *s.maxMembers ||
		slices.ContainsFunc(s.required, func(n string) bool { return v.Get(n) == nil }) ||
		slices.ContainsFunc(s.absent, func(n string) bool { return v.Get(n) != nil }) {
		return false
	}
	for i, name := range v.Keys {
		for _, n := range s.names {
			if !c.validate(n, value.Text(name), newEvaluated()) {
				return false
			}
		}
		for _, o := range s.objects {
			for _, t := range o.termsOf(name) {
				if seen.names[name] = true; !c.validate(t, v.Items[i], newEvaluated()) {
					return false
				}
			}
		}
	}
	return true
}
