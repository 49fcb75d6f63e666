package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// Value is a value in a template: nil (None), bool, int64, *big.Int, float64, string, Bytes, *List, *Tuple,
// *Dict, *Range or an internal type (undefined values, namespaces, macros, iterators, functions). Values are immutable,
// except namespaces, iterators, loops, cyclers and joiners.
type Value = any

// Bytes is Python's bytes.
type Bytes string

// List is Python's list.
type List struct{ Items []Value }

// Tuple is Python's tuple.
type Tuple struct {
	Items []Value
	group bool // result of the groupby filter: has .grouper and .list
}

// NewList returns a list of items.
func NewList(items ...Value) *List { return &List{items} }

func tuple(items ...Value) *Tuple { return &Tuple{Items: items} }

// Range is Python's range.
type Range struct{ start, stop, step, n int64 }

func (r *Range) at(i int64) Value { return r.start + i*r.step }

// slice is the start:stop:step of a subscript.
type slice struct{ start, stop, step Value }

// namespace is the result of namespace(), the only value whose attributes templates can set.
type namespace struct{ attrs *Dict }

// undefined is the value of an unknown name, attribute or item.
type undefined struct {
	hint string
	obj  Value // missing if the name itself is unknown
	name Value
	kind string // exception raised on use; "": UndefinedError
}

// absent is the type of missing, which marks a variable without a value and an omitted argument.
type absent struct{}

var missing = &absent{}

func (u *undefined) fail() error {
	kind := u.kind
	if kind == "" {
		kind = "UndefinedError"
	}
	switch {
	case u.hint != "":
		return raise(kind, "%s", u.hint)
	case u.obj == missing:
		return raise(kind, "'%v' is undefined", u.name)
	}
	if name, ok := u.name.(string); ok {
		return raise(kind, "'%s' has no attribute '%s'", objectType(u.obj), name)
	}
	return raise(kind, "%s has no element %v", objectType(u.obj), u.name)
}

func objectType(v Value) string {
	if v == nil {
		return "None"
	}
	return typeName(v) + " object"
}

func undefinedName(name string) *undefined   { return &undefined{obj: missing, name: name} }
func undefinedOf(obj, name Value) *undefined { return &undefined{obj: obj, name: name} }
func undefinedHint(hint string) *undefined   { return &undefined{hint: hint, obj: missing} }

// builtin is a function of the environment, or a method bound to a value.
type builtin struct {
	name string
	fn   func(r *run, a *arguments) (Value, error)
	repr string // "": derived from name
}

// typeName returns Python's type(v).__name__.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case Bytes:
		return "bytes"
	case *List:
		return "list"
	case *Tuple:
		if v.group {
			return "_GroupTuple"
		}
		return "tuple"
	case *Dict:
		return "dict"
	case *Range:
		return "range"
	case *dictView:
		return v.typeName()
	case *iterator:
		return v.typ
	case *undefined:
		return "Undefined"
	case *namespace:
		return "TemplateNamespace"
	case *slice:
		return "slice"
	case *builtin:
		return "builtin_function_or_method"
	case object:
		return v.typeName()
	}
	return "object"
}

// truth returns Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case Bytes:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Tuple:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case *Range:
		return v.n > 0
	case *dictView:
		return v.d.Len() > 0
	case *undefined:
		return false
	}
	return true
}

// runeCount returns the length of s in code points.
func runeCount(s string) int { return utf8.RuneCountInString(s) }

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// length returns Python's len(v).
func (r *run) length(v Value) (int64, error) {
	switch v := v.(type) {
	case string:
		r.work(len(v) / 16)
		return int64(runeCount(v)), nil
	case Bytes:
		return int64(len(v)), nil
	case *List:
		return int64(len(v.Items)), nil
	case *Tuple:
		return int64(len(v.Items)), nil
	case *Dict:
		return int64(v.Len()), nil
	case *Range:
		return v.n, nil
	case *dictView:
		return int64(v.d.Len()), nil
	case *undefined:
		return 0, nil
	case sized:
		return v.length(r)
	}
	return 0, typeError("object of type '%s' has no len()", typeName(v))
}

// substring returns s[from:to] in code points.
func substring(s string, from, to int) string {
	if from >= to {
		return ""
	}
	if isASCII(s) {
		return s[from:to]
	}
	start, i := -1, 0
	for at := range s {
		if i == from {
			start = at
		}
		if i == to {
			return s[start:at]
		}
		i++
	}
	if start < 0 {
		return ""
	}
	return s[start:]
}

// join is strings.Join, counting memory.
func (r *run) join(parts []string, sep string) (string, error) {
	n := len(sep) * max(0, len(parts)-1)
	for _, p := range parts {
		n += len(p)
	}
	if err := r.alloc(n); err != nil {
		return "", err
	}
	return strings.Join(parts, sep), nil
}

// truth returns bool(v). The length of a loop may consume its iterator.
func (r *run) truth(v Value) (bool, error) {
	if l, ok := v.(sized); ok {
		n, err := l.length(r)
		return n > 0, err
	}
	return truth(v), nil
}

func (n *namespace) set(name string, v Value) error {
	if strings.HasPrefix(name, "_") {
		return raise("SecurityError", "underscore-prefixed attributes cannot be stored on a namespace, but got '%s'", name)
	}
	return n.attrs.Set(name, v)
}
