package jinja

import (
	"slices"
	"strings"
)

// arguments are the arguments of a call.
type arguments struct {
	pos   []Value
	names []string
	named []Value
}

// bind assigns arguments to parameters as Python does. A parameter "name?" is optional and defaults to missing; "/name"
// is positional-only.
func (a *arguments) bind(fn string, params ...string) ([]Value, error) {
	if len(a.pos) > len(params) {
		return nil, typeError("%s() takes %d positional arguments but %d were given", fn, len(params), len(a.pos))
	}
	out := make([]Value, len(params))
	used := 0
	for i, p := range params {
		name := strings.TrimSuffix(p, "?")
		at := -1
		if !strings.HasPrefix(name, "/") {
			at = slices.Index(a.names, name)
		}
		switch {
		case i < len(a.pos):
			if at >= 0 {
				return nil, typeError("%s() got multiple values for argument '%s'", fn, name)
			}
			out[i] = a.pos[i]
		case at >= 0:
			out[i] = a.named[at]
			used++
		case name != p:
			out[i] = missing
		default:
			return nil, typeError("%s() missing required argument: '%s'", fn, strings.TrimPrefix(name, "/"))
		}
	}
	if used != len(a.names) {
		return nil, typeError("%s() got an unexpected keyword argument", fn)
	}
	return out, nil
}

func (a *arguments) noNames(fn string) error {
	if len(a.names) > 0 {
		return typeError("%s() takes no keyword arguments", fn)
	}
	return nil
}

func (r *run) callBuiltin(b *builtin, a *arguments) (Value, error) {
	if err := r.tick(); err != nil {
		return nil, err
	}
	if err := r.enterCall(); err != nil {
		return nil, err
	}
	defer r.leaveCall()
	return b.fn(r, a)
}

// call returns the result of Python's fn(*a).
func (r *run) call(fn Value, a *arguments) (Value, error) {
	switch f := fn.(type) {
	case *builtin:
		return r.callBuiltin(f, a)
	case callableObject:
		return f.call(r, a)
	case *undefined:
		return nil, f.fail()
	}
	return nil, typeError("'%s' object is not callable", typeName(fn))
}

func callable(v Value) bool {
	switch v.(type) {
	case *builtin, callableObject, *undefined:
		return true
	}
	return false
}
