package schema

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
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

// list returns the schemas of a keyword.
func (c *compiler) list(t term, v *value, keyword string) []term {
	if v.kind != typeArray || len(v.items) == 0 && keyword != "prefixItems" && keyword != "items" {
		c.fail(expr.ErrInvalid, t.path, "%s must be an array of schemas", keyword)
		return nil
	}
	all := make([]term, len(v.items))
	for i, item := range v.items {
		all[i] = t.same(item, fmt.Sprintf("/%s/%d", keyword, i))
	}
	return all
}

// strings returns the strings of an array.
func (c *compiler) stringList(v *value, keyword, path string) (names []string) {
	if v.kind != typeArray {
		c.fail(expr.ErrInvalid, path, "%s must be an array of strings", keyword)
		return nil
	}
	for _, item := range v.items {
		if c.isString(item, keyword, path) {
			names = append(names, item.text)
		}
	}
	return names
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointerPart(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return pointerEscapes.Replace(name)
}
