package value

import (
	"slices"
	"strings"
)

// Arguments are the arguments of a call.
type Arguments struct {
	Pos   []Value
	Names []string
	Named []Value
}

// Bind assigns arguments to parameters as Python does. A parameter "name?" is optional and defaults to Missing; "/name"
// is positional-only.
func (a *Arguments) Bind(fn string, params ...string) ([]Value, error) {
	if len(a.Pos) > len(params) {
		return nil, TypeError("%s() takes %d positional arguments but %d were given", fn, len(params), len(a.Pos))
	}
	out := make([]Value, len(params))
	used := 0
	for i, p := range params {
		name := strings.TrimSuffix(p, "?")
		at := -1
		if !strings.HasPrefix(name, "/") {
			at = slices.Index(a.Names, name)
		}
		switch {
		case i < len(a.Pos):
			if at >= 0 {
				return nil, TypeError("%s() got multiple values for argument '%s'", fn, name)
			}
			out[i] = a.Pos[i]
		case at >= 0:
			out[i] = a.Named[at]
			used++
		case name != p:
			out[i] = Missing
		default:
			return nil, TypeError("%s() missing required argument: '%s'", fn, strings.TrimPrefix(name, "/"))
		}
	}
	if used != len(a.Names) {
		return nil, TypeError("%s() got an unexpected keyword argument", fn)
	}
	return out, nil
}

// NoNames returns an error if there are keyword arguments.
func (a *Arguments) NoNames(fn string) error {
	if len(a.Names) > 0 {
		return TypeError("%s() takes no keyword arguments", fn)
	}
	return nil
}

// CallBuiltin calls a function of the environment, as a step, a pass over each argument and a nested call.
func (r *Run) CallBuiltin(b *Builtin, a *Arguments) (Value, error) {
	r.Read(a.Pos...)
	r.Read(a.Named...)
	if err := r.Tick(); err != nil {
		return nil, err
	}
	if err := r.EnterCall(); err != nil {
		return nil, err
	}
	defer r.LeaveCall()
	return b.Fn(r, a)
}

// Call returns the result of Python's fn(*a).
func (r *Run) Call(fn Value, a *Arguments) (Value, error) {
	switch f := fn.(type) {
	case *Builtin:
		return r.CallBuiltin(f, a)
	case Callable:
		return f.Call(r, a)
	case *Undefined:
		return nil, f.Fail()
	}
	return nil, TypeError("'%s' object is not callable", TypeName(fn))
}

// IsCallable returns Python's callable(v).
func IsCallable(v Value) bool {
	switch v.(type) {
	case *Builtin, Callable, *Undefined:
		return true
	}
	return false
}

// Optional returns an argument, or def if it is omitted.
func Optional(v, def Value) Value {
	if v == Missing {
		return def
	}
	return v
}

// IsTrue reports whether an optional argument is given and true.
func IsTrue(v Value) bool { return v != Missing && Truth(v) }

// NeedText returns an argument that must be a string.
func NeedText(v Value, what string) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", TypeError("%s must be str, not %s", what, TypeName(v))
	}
	return s, nil
}

// NeedInt returns an integer argument, or def if it is omitted.
func NeedInt(v Value, def int64) (int64, error) {
	if v == Missing {
		return def, nil
	}
	return ClampInt(v)
}
