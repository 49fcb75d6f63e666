package schema

import (
	"math/big"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// constants matches the constants of s that satisfy all its terms.
func (c *compiler) constants(s *shape) *expr.Expr {
	var words []string
	var parts []*expr.Expr
	for _, v := range *s.consts {
		if !c.holds(s, v) {
			continue
		}
		if v.kind == typeArray || v.kind == typeObject {
			parts = append(parts, constant(v))
		} else {
			words = append(words, v.spellings()...)
		}
	}
	return expr.Alt(append(parts, expr.Words(words))...)
}

// holds reports whether a constant satisfies the terms of s.
func (c *compiler) holds(s *shape, v *value) bool {
	if len(s.barred)+len(s.unions)+len(s.extras) == 0 && s.freeNumbers() && s.freeStrings() && s.freeObjects() &&
		s.freeArrays() && v.kind != anyNumber {
		return s.types&v.kind != 0 // nothing but constants
	}
	for _, t := range s.terms {
		if !c.valid(t, v) {
			return false
		}
	}
	return true
}

// spellings returns the accepted texts of a scalar: strings unescaped, and with all non-ASCII characters escaped;
// numbers as given, and as an integer or a decimal.
func (v *value) spellings() []string {
	plain := string(v.dump(nil, false))
	out := []string{plain}
	switch v.kind {
	case typeString:
		if ascii := string(v.dump(nil, true)); ascii != plain {
			out = append(out, ascii)
		}
	case anyNumber:
		r, ok := v.rational()
		if !ok {
			break
		}
		if text, ok := decimalText(r); ok && text != plain {
			out = append(out, text)
		}
	}
	return out
}

// decimalText returns a number without an exponent, or false if it is long.
func decimalText(r *big.Rat) (string, bool) {
	places, exact := r.FloatPrec()
	text := r.FloatString(places)
	return text, exact && len(text) <= jsontext.MaxNumber
}

// constant matches an array or an object.
func constant(v *value) *expr.Expr {
	var parts []*expr.Expr
	for i, item := range v.items {
		if i > 0 {
			parts = append(parts, expr.Text(", "))
		}
		if v.kind == typeObject {
			parts = append(parts, expr.Words(textValue(v.keys[i]).spellings()), expr.Text(": "))
		}
		if item.kind == typeArray || item.kind == typeObject {
			parts = append(parts, constant(item))
		} else {
			parts = append(parts, expr.Words(item.spellings()))
		}
	}
	if v.kind == typeArray {
		return expr.Seq(expr.Text("["), expr.Seq(parts...), expr.Text("]"))
	}
	return expr.Seq(expr.Text("{"), expr.Seq(parts...), expr.Text("}"))
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
func (c *compiler) valid(t term, v *value) bool {
	if t.only != "" { // a negated keyword: exact for one keyword as a schema of its own
		t.schema = c.derive(t.schema, "only\x00"+t.only, func() *value { return onlyKeyword(t.schema, t.only) })
		t.only = ""
	}
	return c.validate(t, v, newEvaluated()) != t.not
}

// onlyKeyword returns the schema with one keyword and those that belong to it.
func onlyKeyword(schema *value, keyword string) *value {
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
	out := &value{kind: typeObject}
	for i, k := range schema.keys {
		if slices.Contains(keep, k) {
			out.keys, out.items = append(out.keys, k), append(out.items, schema.items[i])
		}
	}
	return out
}

// validate reports whether a constant satisfies a schema, and notes what the schema evaluates.
func (c *compiler) validate(t term, v *value, seen *evaluated) bool {
	if !c.step(1, t.path) {
		return false
	}
	t.in = c.doc.resourceOf(t.schema, t.in)
	t.outer = c.enter(t.outer, t.in)
	t.not = false
	switch t.schema.kind {
	case typeBoolean:
		return t.schema.truth
	case typeObject:
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
	s.types = anyType
	alone := t.in.dialect.refAlone() && t.schema.get("$ref") != nil
	var late []string
	for i, k := range t.schema.keys {
		if !c.applies(t, k) || alone && k != "$ref" {
			continue
		}
		item := t.schema.items[i]
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
		rest := t.sub(t.schema.get(k), "/"+k)
		for i, item := range v.items {
			if k == "unevaluatedProperties" && v.kind == typeObject && !seen.names[v.keys[i]] {
				seen.names[v.keys[i]] = true
			} else if k == "unevaluatedItems" && v.kind == typeArray && !seen.items[i] {
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
var combines = setOf([]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
	"$recursiveRef", "dependentRequired", "dependentSchemas", "dependencies"})

// validCombination is validate for one keyword of combines.
func (c *compiler) validCombination(t term, keyword string, item, v *value, seen *evaluated) bool {
	holds := func(schema *value) bool {
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
		schema := t.schema.get(next)
		return schema == nil || holds(schema)
	case "$ref", "$dynamicRef", "$recursiveRef":
		to, ok := c.target(item.text, t)
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
	for _, schema := range item.items {
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
	return matching == len(item.items)
}

// validShape reports whether a constant satisfies a shape without unions.
func (c *compiler) validShape(s *shape, v *value, seen *evaluated, path string) bool {
	if s.consts != nil && !slices.ContainsFunc(*s.consts, v.equal) {
		return false
	}
	kind := v.kind
	var r *big.Rat
	if kind == anyNumber {
		var ok bool
		if r, ok = c.rational(v, path); !ok {
			return false
		}
		kind = typeFraction
		if r.IsInt() {
			kind = typeInteger
		}
	}
	if s.types&kind == 0 {
		return false
	}
	switch v.kind {
	case anyNumber:
		return s.numbers.Holds(r)
	case typeString:
		return c.validText(s, v.text, path)
	case typeArray:
		return c.validArray(s, v, seen, path)
	case typeObject:
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

func (c *compiler) validArray(s *shape, v *value, seen *evaluated, path string) bool {
	if len(v.items) < s.minItems || s.maxItems != nil && len(v.items) > *s.maxItems || s.unique && !v.unique() {
		return false
	}
	for i, item := range v.items {
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
		for i, item := range v.items {
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

// unique reports whether the items of an array differ.
func (v *value) unique() bool {
	for i, item := range v.items {
		if slices.ContainsFunc(v.items[:i], item.equal) {
			return false
		}
	}
	return true
}

func (c *compiler) validObject(s *shape, v *value, seen *evaluated, path string) bool {
	if len(v.keys) < s.minMembers || s.maxMembers != nil && len(v.keys) > *s.maxMembers ||
		slices.ContainsFunc(s.required, func(n string) bool { return v.get(n) == nil }) ||
		slices.ContainsFunc(s.absent, func(n string) bool { return v.get(n) != nil }) {
		return false
	}
	for i, name := range v.keys {
		for _, n := range s.names {
			if !c.validate(n, textValue(name), newEvaluated()) {
				return false
			}
		}
		for _, o := range s.objects {
			for _, t := range o.termsOf(name) {
				if seen.names[name] = true; !c.validate(t, v.items[i], newEvaluated()) {
					return false
				}
			}
		}
	}
	return true
}
