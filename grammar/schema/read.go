package schema

import (
	"fmt"
	"math/big"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/value"
	"github.com/ingotml/ingot/internal/limits"
)

// Parsers of keywords' values.

func (c *compiler) types(v *value.Value, path string) (types value.Types) {
	names := []*value.Value{v}
	if v.Kind == value.Array {
		names = v.Items
	}
	for _, n := range names {
		t, ok := value.TypeNames[n.Text]
		if n.Kind != value.String || !ok {
			const format = "type %s is not one of null, boolean, integer, number, string, array, object"
			c.fail(expr.ErrInvalid, path, format, n.Dump(nil, false))
		}
		types |= t
	}
	return types
}

func (c *compiler) isString(v *value.Value, keyword, path string) bool {
	if v.Kind != value.String {
		c.fail(expr.ErrInvalid, path, "%s must be a string", keyword)
	}
	return v.Kind == value.String
}

// maxCount is the largest count; larger ones are clamped to it.
const maxCount = limits.GrammarRepeat

func (c *compiler) count(v *value.Value, path string) (int, bool) {
	r, ok := c.rational(v, path)
	if !ok {
		return 0, false
	}
	if !r.IsInt() || r.Sign() < 0 {
		c.fail(expr.ErrInvalid, path, "%s is not a non-negative integer", v.Text)
		return 0, false
	}
	if r.Cmp(big.NewRat(maxCount, 1)) > 0 {
		return maxCount, true
	}
	return int(r.Num().Int64()), true
}

func (c *compiler) rational(v *value.Value, path string) (*big.Rat, bool) {
	r, ok := v.Rational()
	if !ok {
		c.fail(expr.ErrInvalid, path, "%.40s is not a number, or is out of range", v.Dump(nil, false))
	}
	return r, ok
}

// list returns the schemas of a keyword.
func (c *compiler) list(t term, v *value.Value, keyword string) []term {
	if v.Kind != value.Array || len(v.Items) == 0 && keyword != "prefixItems" && keyword != "items" {
		c.fail(expr.ErrInvalid, t.path, "%s must be an array of schemas", keyword)
		return nil
	}
	all := make([]term, len(v.Items))
	for i, item := range v.Items {
		all[i] = t.same(item, fmt.Sprintf("/%s/%d", keyword, i))
	}
	return all
}

// stringList returns the strings of an array.
func (c *compiler) stringList(v *value.Value, keyword, path string) (names []string) {
	if v.Kind != value.Array {
		c.fail(expr.ErrInvalid, path, "%s must be an array of strings", keyword)
		return nil
	}
	for _, item := range v.Items {
		if c.isString(item, keyword, path) {
			names = append(names, item.Text)
		}
	}
	return names
}
