package jinja

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/limits"
)

// arguments are the arguments of a call.
type arguments struct {
	pos   []Value
	names []string
	named []Value
}

func (c *callArgs) eval(r *run, e *env) (*arguments, error) {
	a := &arguments{}
	var err error
	if len(c.pos) > 0 {
		if a.pos, err = evalAll(r, e, c.pos); err != nil {
			return nil, err
		}
	}
	if len(c.named) > 0 {
		if a.named, err = evalAll(r, e, c.named); err != nil {
			return nil, err
		}
		a.names = slices.Clone(c.names)
	}
	if c.dynPos != nil {
		v, err := c.dynPos.eval(r, e)
		if err != nil {
			return nil, err
		}
		more, err := collect(r, v)
		if err != nil {
			return nil, err
		}
		a.pos = append(slices.Clip(a.pos), more...)
	}
	if c.dynNamed != nil {
		v, err := c.dynNamed.eval(r, e)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return nil, typeError("argument after ** must be a mapping, not %s", typeName(v))
		}
		for i, k := range d.keys {
			name, ok := k.(string)
			if !ok {
				return nil, typeError("keywords must be strings")
			}
			if slices.Contains(a.names, name) {
				return nil, typeError("got multiple values for keyword argument '%s'", name)
			}
			a.names, a.named = append(a.names, name), append(a.named, d.values[i])
			if len(a.names) > limits.TemplateArguments {
				return nil, limitError("more than %d named arguments", limits.TemplateArguments)
			}
		}
	}
	return a, nil
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
	case *dictType:
		return r.callBuiltin(&f.builtin, a)
	case *macro:
		return f.call(r, a)
	case *loopContext:
		return f.call(a)
	case *joiner:
		if len(a.pos)+len(a.names) > 0 {
			return nil, typeError("__call__() takes no arguments")
		}
		return f.next(), nil
	case *undefined:
		return nil, f.fail()
	}
	return nil, typeError("'%s' object is not callable", typeName(fn))
}

func callable(v Value) bool {
	switch v.(type) {
	case *builtin, *dictType, *macro, *loopContext, *joiner, *undefined:
		return true
	}
	return false
}
