package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/limits"
)

// Parsers of keywords' values.

func (c *compiler) types(v *value, path string) (types typeSet) {
	names := []*value{v}
	if v.kind == typeArray {
		names = v.items
	}
	for _, n := range names {
		t, ok := typeNames[n.text]
		if n.kind != typeString || !ok {
			const format = "type %s is not one of null, boolean, integer, number, string, array, object"
			c.fail(expr.ErrInvalid, path, format, n.dump(nil, false))
		}
		types |= t
	}
	return types
}

func (c *compiler) isString(v *value, keyword, path string) bool {
	if v.kind != typeString {
		c.fail(expr.ErrInvalid, path, "%s must be a string", keyword)
	}
	return v.kind == typeString
}

// maxCount is the largest count; larger ones are clamped to it.
const maxCount = limits.GrammarRepeat

func (c *compiler) count(v *value, path string) (int, bool) {
	r, ok := c.rational(v, path)
	if !ok {
		return 0, false
	}
	if !r.IsInt() || r.Sign() < 0 {
		c.fail(expr.ErrInvalid, path, "%s is not a non-negative integer", v.text)
		return 0, false
	}
	if r.Cmp(big.NewRat(maxCount, 1)) > 0 {
		return maxCount, true
	}
	return int(r.Num().Int64()), true
}

func (c *compiler) rational(v *value, path string) (*big.Rat, bool) {
	r, ok := v.rational()
	if !ok {
		c.fail(expr.ErrInvalid, path, "%.40s is not a number, or is out of range", v.dump(nil, false))
	}
	return r, ok
}

// onlyFalse reports whether the value of an unevaluated keyword is false. A schema there is unsupported.
func (c *compiler) onlyFalse(v *value, keyword, path string) bool {
	if v.kind != typeBoolean {
		c.fail(expr.ErrUnsupported, path, "the keyword %s with a schema", keyword)
	}
	return !v.truth
}

// list returns the schemas of a keyword.
func (c *compiler) list(v *value, keyword, path string) []located {
	if v.kind != typeArray || len(v.items) == 0 && keyword != "prefixItems" {
		c.fail(expr.ErrInvalid, path, "%s must be an array of schemas", keyword)
		return nil
	}
	all := make([]located, len(v.items))
	for i, item := range v.items {
		all[i] = located{item, fmt.Sprintf("%s/%s/%d", path, keyword, i)}
	}
	return all
}

func pointerPart(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// checkDisjoint refuses oneOf if a value could match two of its alternatives: a grammar can express "any of", not
// "exactly one". Alternatives are disjoint by type, by constants, or by a property that both require with different
// constants.
func (c *compiler) checkDisjoint(parts []located, path string) {
	shapes := make([]shape, len(parts))
	for i, p := range parts {
		shapes[i].types = anyType
		c.gather(&shapes[i], p, nil)
		for len(shapes[i].unions) == 1 && len(shapes[i].unions[0]) == 1 { // a reference
			to := shapes[i].unions[0][0]
			shapes[i].unions, shapes[i].bare = nil, false
			if c.gather(&shapes[i], to, nil); c.err != nil {
				return
			}
		}
	}
	for i := range shapes {
		for k := range i {
			if c.err == nil && !c.disjoint(&shapes[i], &shapes[k], 0) {
				c.fail(expr.ErrUnsupported, path, "oneOf alternatives %d and %d may both match; use anyOf", k, i)
				return
			}
		}
	}
}

func (c *compiler) disjoint(a, b *shape, depth int) bool {
	if a.kinds()&b.kinds() == 0 {
		return true
	}
	if a.consts != nil && b.consts != nil {
		return !slices.ContainsFunc(*a.consts, func(v *value) bool { return slices.ContainsFunc(*b.consts, v.equal) })
	}
	if (a.kinds()&b.kinds())&^typeObject != 0 || depth > 3 {
		return false
	}
	for _, name := range a.required {
		if !slices.Contains(b.required, name) {
			continue
		}
		x, y := shape{types: anyType}, shape{types: anyType}
		for s, to := range map[*shape]*shape{a: &x, b: &y} {
			for _, o := range s.objects {
				if p, ok := o.properties[name]; ok {
					c.gather(to, p, nil)
				}
			}
		}
		if c.err == nil && c.disjoint(&x, &y, depth+1) {
			return true
		}
	}
	return false
}

// kinds returns the types that values of s can have.
func (s *shape) kinds() typeSet {
	if s.consts == nil {
		return s.types
	}
	var kinds typeSet
	for _, v := range *s.consts {
		kinds |= v.kind
	}
	return kinds & s.types
}
