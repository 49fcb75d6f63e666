package schema

import (
	"fmt"
	"slices"
	"strings"
)

// term is a schema that a value must satisfy, or, if not is set, must not.
type term struct {
	schema *value
	path   string
	in     *resource
	not    bool
	only   string // the term is this keyword of the schema alone
	scope  *scope // the innermost schema with unevaluated keywords around the term, for the same value
	outer  string // resources on the way here that $dynamicRef may refer to; see compiler.enter
	chain  *chain // schemas around the term for the same value
}

// chain is the way by which schemas lead to each other for one value.
type chain struct {
	up     *chain
	schema *value
	not    bool
}

func (c *chain) has(schema *value, not bool) bool {
	for ; c != nil; c = c.up {
		if c.schema == schema && c.not == not {
			return true
		}
	}
	return false
}

// scope is a schema with unevaluatedProperties or unevaluatedItems.
type scope struct{ up *scope }

func (s *scope) within(o *scope) bool {
	for ; s != nil; s = s.up {
		if s == o {
			return true
		}
	}
	return false
}

// sub returns the term of a schema for a part of the value: a property or an item.
func (t term) sub(schema *value, path string) term {
	return term{schema: schema, path: t.path + path, in: t.in, outer: t.outer}
}

// same returns the term of a schema for the same value.
func (t term) same(schema *value, path string) term {
	t.schema, t.only = schema, ""
	t.path += path
	return t
}

func (t term) negated() term {
	t.not = !t.not
	t.scope = nil // what fails has no annotations
	return t
}

func (t term) key() string {
	return fmt.Sprintf("%p%v%s\x00%s\x00%p", t.schema, t.not, t.only, t.outer, t.scope)
}

// conjunction is a list of terms that a value must all satisfy.
type conjunction []term

func (c conjunction) path() string {
	if len(c) == 0 {
		return "#"
	}
	return c[0].path
}

// key identifies the set of terms.
func (c conjunction) key() string {
	parts := make([]string, len(c))
	for i, t := range c {
		parts[i] = t.key()
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}
