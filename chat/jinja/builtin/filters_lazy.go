package builtin

import (
	"slices"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// picker returns what a lazy filter makes of an item, and whether it yields that.
type picker func(value.Value) (value.Value, bool, error)

// lazy returns a generator over a value. Its first step calls prepare. It yields nothing if the value is false.
func lazy(r *value.Run, name string, over value.Value, prepare func() (picker, error)) *value.Iterator {
	var it *value.Iterator
	var fn picker
	return value.Generator(r, name, func() (value.Value, bool, error) {
		if it == nil {
			if yes, err := r.Truth(over); err != nil || !yes {
				return nil, false, err
			}
			var err error
			if fn, err = prepare(); err != nil {
				return nil, false, err
			}
			if it, err = value.Iterate(over); err != nil {
				return nil, false, err
			}
		}
		for {
			x, ok, err := it.Step()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.Tick(); err != nil {
				return nil, false, err
			}
			if y, keep, err := fn(x); keep || err != nil {
				return y, keep, err
			}
		}
	})
}

// named calls the filter or test with this name.
func named(
	r *value.Run, table map[string]*value.Builtin, what string, name, v value.Value, rest []value.Value,
	a *value.Arguments,
) (value.Value, error) {
	s, ok := name.(string)
	b := table[s]
	if !ok || b == nil {
		if _, err := value.HashKey(name); err != nil {
			return nil, err
		}
		t, err := r.Repr(name)
		if err != nil {
			return nil, err
		}
		return nil, value.Raise("TemplateRuntimeError", "No %s named %s.", what, t)
	}
	return r.CallBuiltin(b, &value.Arguments{Pos: append([]value.Value{v}, rest...), Names: a.Names, Named: a.Named})
}

func filterMap(r *value.Run, a *value.Arguments) (value.Value, error) {
	if len(a.Pos) == 0 {
		return nil, value.TypeError("map() missing argument 'value'")
	}
	rest := a.Pos[1:]
	return lazy(r, "sync_do_map", a.Pos[0], func() (picker, error) {
		if at := slices.Index(a.Names, "attribute"); len(rest) == 0 && at >= 0 {
			var def value.Value = value.Missing
			for i, n := range a.Names {
				if n == "default" {
					def = a.Named[i]
				} else if n != "attribute" {
					return nil, value.Raise("FilterArgumentError", "Unexpected keyword argument '%s'", n)
				}
			}
			get := attrGetter(r, a.Named[at], def, false)
			return func(x value.Value) (value.Value, bool, error) { y, err := get(r, x); return y, true, err }, nil
		}
		if len(rest) == 0 {
			return nil, value.Raise("FilterArgumentError", "map requires a filter argument")
		}
		return func(x value.Value) (value.Value, bool, error) {
			y, err := named(r, filters, "filter", rest[0], x, rest[1:], a)
			return y, true, err
		}, nil
	}), nil
}

func selection(name string, want, attr bool) func(r *value.Run, a *value.Arguments) (value.Value, error) {
	return func(r *value.Run, a *value.Arguments) (value.Value, error) {
		if len(a.Pos) == 0 {
			return nil, value.TypeError("%s() missing argument 'value'", name)
		}
		rest := a.Pos[1:]
		return lazy(r, "select_or_reject", a.Pos[0], func() (picker, error) {
			var get value.Key
			rest := rest
			if attr {
				if len(rest) == 0 {
					return nil, value.Raise("FilterArgumentError", "Missing parameter for attribute name")
				}
				get, rest = attrGetter(r, rest[0], value.Missing, false), rest[1:]
			}
			return func(x value.Value) (value.Value, bool, error) {
				y := x
				var err error
				if get != nil {
					if y, err = get(r, x); err != nil {
						return nil, false, err
					}
				}
				if len(rest) > 0 {
					if y, err = named(r, tests, "test", rest[0], y, rest[1:], a); err != nil {
						return nil, false, err
					}
				}
				yes, err := r.Truth(y)
				return x, yes == want, err
			}, nil
		}), nil
	}
}
