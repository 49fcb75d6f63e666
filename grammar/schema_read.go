package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ingotml/ingot/limits"
)

// What keywords hold.

func (c *schemaCompiler) types(v *value, path string) (types typeSet) {
	names := []*value{v}
	if v.kind == typeArray {
		names = v.items
	}
	for _, n := range names {
		t, ok := typeNames[n.text]
		if n.kind != typeString || !ok {
			c.fail(ErrInvalid, path, "type %s is none of null, boolean, integer, number, string, array, object", n.dump(nil, false))
		}
		types |= t
	}
	return types
}

func (c *schemaCompiler) isString(v *value, keyword, path string) bool {
	if v.kind != typeString {
		c.fail(ErrInvalid, path, "%s must hold a string", keyword)
	}
	return v.kind == typeString
}

// maxCount is above which a count cannot be told from no limit.
const maxCount = limits.GrammarRepeat

func (c *schemaCompiler) count(v *value, path string) (int, bool) {
	r, ok := c.rational(v, path)
	if !ok {
		return 0, false
	}
	if !r.IsInt() || r.Sign() < 0 {
		c.fail(ErrInvalid, path, "%s is no count", v.text)
		return 0, false
	}
	if r.Cmp(big.NewRat(maxCount, 1)) > 0 {
		return maxCount, true
	}
	return int(r.Num().Int64()), true
}

func (c *schemaCompiler) rational(v *value, path string) (*big.Rat, bool) {
	r, ok := v.rational()
	if !ok {
		c.fail(ErrInvalid, path, "%.40s is no number, or is out of range", v.dump(nil, false))
	}
	return r, ok
}

// onlyFalse reports whether a keyword closes what it is about; a schema there is not supported.
func (c *schemaCompiler) onlyFalse(v *value, keyword, path string) bool {
	if v.kind != typeBoolean {
		c.fail(ErrUnsupported, path, "the keyword %s with a schema", keyword)
	}
	return !v.truth
}

// list is the schemas of a keyword.
func (c *schemaCompiler) list(v *value, keyword, path string) []located {
	if v.kind != typeArray || len(v.items) == 0 && keyword != "prefixItems" {
		c.fail(ErrInvalid, path, "%s must be an array of schemas", keyword)
		return nil
	}
	all := make([]located, len(v.items))
	for i, item := range v.items {
		all[i] = located{item, fmt.Sprintf("%s/%s/%d", path, keyword, i)}
	}
	return all
}

func pointerPart(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// checkDisjoint refuses alternatives of oneOf that a value could satisfy together: a grammar can say "any of", not "exactly one".
// Alternatives are known to exclude each other by their types, by their constants, or by a property that both require with
// different constants.
func (c *schemaCompiler) checkDisjoint(parts []located, path string) {
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
				c.fail(ErrUnsupported, path, "oneOf whose alternatives %d and %d may both hold; use anyOf", k, i)
				return
			}
		}
	}
}

func (c *schemaCompiler) disjoint(a, b *shape, depth int) bool {
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

// kinds is the types that s can have.
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
