package schema

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
)

// wrapAt prefixes an error with a location.
func wrapAt(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// holds reports whether a constant satisfies s, which has no alternatives.
func (c *compiler) holds(s *shape, v *value, path string) bool {
	if !c.step(1, path) {
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
		if s.low != nil {
			if d := r.Cmp(s.low.value); d < 0 || d == 0 && s.low.exclusive {
				return false
			}
		}
		if s.high != nil {
			if d := r.Cmp(s.high.value); d > 0 || d == 0 && s.high.exclusive {
				return false
			}
		}
		for _, m := range s.multiples {
			if !new(big.Rat).Quo(r, m).IsInt() {
				return false
			}
		}
	case typeString:
		return c.holdsText(s, v.text, path)
	case typeArray:
		if len(v.items) < s.minItems || s.maxItems != nil && len(v.items) > *s.maxItems {
			return false
		}
		for i, item := range v.items {
			evaluated := false
			for _, a := range s.arrays {
				switch {
				case i < len(a.prefix):
					evaluated = true
					if !c.allHold([]located{a.prefix[i]}, item, path) {
						return false
					}
				case a.others != nil:
					evaluated = true
					if !c.allHold([]located{*a.others}, item, path) {
						return false
					}
				}
			}
			if s.closedList && !evaluated {
				return false
			}
		}
	case typeObject:
		if len(v.keys) < s.minMembers || s.maxMembers != nil && len(v.keys) > *s.maxMembers {
			return false
		}
		for _, name := range s.required {
			if v.get(name) == nil {
				return false
			}
		}
		for i, name := range v.keys {
			if !c.allHold(s.names, &value{kind: typeString, text: name}, path) {
				return false
			}
			all := c.schemasOf(s, name, false)
			if s.closed && len(all) == 0 || !c.allHold(all, v.items[i], path) {
				return false
			}
		}
	}
	return true
}

// allHold reports whether a constant satisfies all schemas.
func (c *compiler) allHold(all []located, v *value, path string) bool {
	for _, l := range all {
		s := shape{types: anyType}
		c.gather(&s, l, nil)
		if !c.unionHolds(&s, v, path) {
			return false
		}
	}
	return true
}

func (c *compiler) unionHolds(s *shape, v *value, path string) bool {
	if s.consts != nil && !slices.ContainsFunc(*s.consts, v.equal) {
		return false
	}
	for _, u := range s.unions {
		if !slices.ContainsFunc(u, func(l located) bool { return c.allHold([]located{l}, v, path) }) {
			return false
		}
	}
	return c.holds(s, v, path)
}

func (c *compiler) matches(pattern, text, path string) bool {
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.fail(expr.ErrUnsupported, path, "pattern %q: %v", expr.Clip(pattern), err)
		return false
	}
	return re.MatchString(text)
}
