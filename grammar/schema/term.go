package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/value"
)

// Schemas often repeat alternatives: each of ten conditions asks for one of the same three definitions. Their
// combinations are 3 to the 10, but after the first choice most of the others hold already.

// held identifies a schema, or a keyword of it, that a shape satisfies.
type held struct {
	schema *value.Value
	not    bool
	only   string
	outer  string
}

func (t term) held() held { return held{t.schema, t.not, t.only, t.outer} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointerPart(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return pointerEscapes.Replace(name)
}

// term is a schema that a value must satisfy, or, if not is set, must not.
type term struct {
	schema *value.Value
	path   string
	in     *document.Resource
	not    bool
	only   string // the term is this keyword of the schema alone
	scope  *scope // the innermost schema with unevaluated keywords around the term, for the same value
	outer  string // resources on the way here that $dynamicRef may refer to; see compiler.enter
	chain  *chain // schemas around the term for the same value
}

// chain is the way by which schemas lead to each other for one value.
type chain struct {
	up     *chain
	schema *value.Value
	not    bool
}

func (c *chain) has(schema *value.Value, not bool) bool {
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
func (t term) sub(schema *value.Value, path string) term {
	return term{schema: schema, path: t.path + path, in: t.in, outer: t.outer}
}

// same returns the term of a schema for the same value.
func (t term) same(schema *value.Value, path string) term {
	t.schema, t.only = schema, ""
	t.path += path
	return t
}

func (t term) negated() term {
	t.not = !t.not
	t.scope = nil // what fails has no annotations
	return t
}

// key identifies t by the addresses of its parts.
func (t term) key() string {
	b := strconv.AppendUint(make([]byte, 0, 48), uint64(reflect.ValueOf(t.schema).Pointer()), 36)
	if b = append(b, '+'); t.not {
		b = append(b, '!')
	}
	b = append(b, t.only...)
	b = append(append(b, 0), t.outer...)
	return string(strconv.AppendUint(append(b, 0), uint64(reflect.ValueOf(t.scope).Pointer()), 36))
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
	if len(c) == 1 {
		return c[0].key()
	}
	parts := make([]string, len(c))
	for i, t := range c {
		parts[i] = t.key()
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}
