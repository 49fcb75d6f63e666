package value

import (
	"math/big"
	"strings"
)

// Value is a value in a template: nil (None), bool, int64, *big.Int, float64, string, *List, *Tuple, *Dict,
// *Range or an internal type (undefined values, namespaces, macros, iterators, functions). Values are immutable, except
// namespaces, iterators, loops and joiners.
type Value = any

// List is Python's list.
type List struct{ Items []Value }

// Tuple is Python's tuple.
type Tuple struct{ Items []Value }

// NewList returns a list of items.
func NewList(items ...Value) *List { return &List{items} }

// NewTuple returns a tuple of items.
func NewTuple(items ...Value) *Tuple { return &Tuple{Items: items} }

// Range is Python's range.
type Range struct{ Start, Stop, Step, N int64 }

func (r *Range) at(i int64) Value { return r.Start + i*r.Step }

// Slice is the start:stop:step of a subscript.
type Slice struct{ Start, Stop, Step Value }

// Namespace is the result of namespace(), the only value whose attributes templates can set.
type Namespace struct{ Attrs *Dict }

// Undefined is the value of an unknown name, attribute or item.
type Undefined struct {
	Hint string
	Obj  Value // Missing if the name itself is unknown
	Name Value
	Kind string // exception raised on use; "": UndefinedError
}

// absent is the type of Missing.
type absent struct{}

// Missing marks a variable without a value and an omitted argument.
var Missing = &absent{}

// Fail returns the exception of using u.
func (u *Undefined) Fail() error {
	kind := u.Kind
	if kind == "" {
		kind = "UndefinedError"
	}
	switch {
	case u.Hint != "":
		return Raise(kind, "%s", u.Hint)
	case u.Obj == Missing:
		return Raise(kind, "'%v' is undefined", u.Name)
	}
	if name, ok := u.Name.(string); ok {
		return Raise(kind, "'%s' has no attribute '%s'", objectType(u.Obj), name)
	}
	return Raise(kind, "%s has no element %v", objectType(u.Obj), u.Name)
}

func objectType(v Value) string {
	if v == nil {
		return "None"
	}
	return TypeName(v) + " object"
}

// UndefinedName returns the value of an unknown variable.
func UndefinedName(name string) *Undefined { return &Undefined{Obj: Missing, Name: name} }

// UndefinedOf returns the value of an unknown attribute or item of obj.
func UndefinedOf(obj, name Value) *Undefined { return &Undefined{Obj: obj, Name: name} }

// UndefinedHint returns an undefined value with a message of its own.
func UndefinedHint(hint string) *Undefined { return &Undefined{Hint: hint, Obj: Missing} }

// Builtin is a function of the environment, or a method bound to a value.
type Builtin struct {
	Name string
	Fn   func(r *Run, a *Arguments) (Value, error)
	repr string // "": derived from name
}

// TypeName returns Python's type(v).__name__.
func TypeName(v Value) string {
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
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *Range:
		return "range"
	case *DictView:
		return v.typeName()
	case *Iterator:
		return v.Type
	case *Undefined:
		return "Undefined"
	case *Namespace:
		return "TemplateNamespace"
	case *Slice:
		return "slice"
	case *Builtin:
		return "builtin_function_or_method"
	case Object:
		return v.TypeName()
	}
	return "object"
}

// Truth returns Python's bool(v).
func Truth(v Value) bool {
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
	case *List:
		return len(v.Items) > 0
	case *Tuple:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case *Range:
		return v.N > 0
	case *DictView:
		return v.Dict.Len() > 0
	case *Undefined:
		return false
	}
	return true
}

// Length returns Python's len(v).
func (r *Run) Length(v Value) (int64, error) {
	switch v := v.(type) {
	case string:
		r.Read(v)
		return int64(RuneCount(v)), nil
	case *List:
		return int64(len(v.Items)), nil
	case *Tuple:
		return int64(len(v.Items)), nil
	case *Dict:
		return int64(v.Len()), nil
	case *Range:
		return v.N, nil
	case *DictView:
		return int64(v.Dict.Len()), nil
	case *Undefined:
		return 0, nil
	case Sized:
		return v.Length(r)
	}
	return 0, TypeError("object of type '%s' has no len()", TypeName(v))
}

// Truth returns bool(v). The length of a loop may consume its iterator.
func (r *Run) Truth(v Value) (bool, error) {
	// Only what Truth takes for true can be an object with a length. A false value is known without the slower test.
	if !Truth(v) {
		return false, nil
	}
	switch v := v.(type) {
	case bool, string, *List, *Dict:
		return true, nil
	case Sized:
		n, err := v.Length(r)
		return n > 0, err
	}
	return true, nil
}

// Set sets an attribute, except one that starts with an underscore.
func (n *Namespace) Set(name string, v Value) error {
	if strings.HasPrefix(name, "_") {
		return Raise("SecurityError", "underscore-prefixed attributes cannot be stored on a namespace, but got '%s'", name)
	}
	return n.Attrs.Set(name, v)
}
