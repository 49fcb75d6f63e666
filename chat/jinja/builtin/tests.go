package builtin

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

// tests are jinja2's tests, the right-hand sides of "is".
var tests map[string]*value.Builtin

func init() {
	tests = map[string]*value.Builtin{}
	add := func(name string, fn func(r *value.Run, v []value.Value) (bool, error), params ...string) {
		tests[name] = &value.Builtin{Name: name, Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
			v, err := a.Bind(name, params...)
			if err != nil {
				return nil, err
			}
			ok, err := fn(r, v)
			return ok, err
		}}
	}
	simple := func(name string, fn func(v value.Value) bool) {
		add(name, func(_ *value.Run, v []value.Value) (bool, error) { return fn(v[0]), nil }, "value")
	}
	isUndefined := func(v value.Value) bool { _, ok := v.(*value.Undefined); return ok }
	simple("defined", func(v value.Value) bool { return !isUndefined(v) })
	simple("undefined", isUndefined)
	simple("none", func(v value.Value) bool { return v == nil })
	simple("boolean", func(v value.Value) bool { _, ok := v.(bool); return ok })
	simple("true", func(v value.Value) bool { return v == true })
	simple("false", func(v value.Value) bool { return v == false })
	simple("integer", func(v value.Value) bool { _, ok := value.Integer(v); _, b := v.(bool); return ok && !b })
	simple("float", func(v value.Value) bool { _, ok := v.(float64); return ok })
	simple("number", value.IsNumber)
	simple("string", func(v value.Value) bool { _, ok := v.(string); return ok })
	simple("mapping", func(v value.Value) bool { _, ok := v.(*value.Dict); return ok })
	simple("iterable", func(v value.Value) bool { return value.CheckIterable(v) == nil })
	simple("sequence", func(v value.Value) bool {
		switch v.(type) {
		case string, *value.List, *value.Tuple, *value.Dict, *value.Range, *value.Undefined:
			return true
		}
		return false
	})
	tests["escaped"] = unsupportedFeature("test", "escaped")
	add("callable", func(_ *value.Run, v []value.Value) (bool, error) { return value.IsCallable(v[0]), nil }, "/obj")
	for name, is := range map[string]func(string) bool{
		"lower": func(s string) bool { return cased(s, isLower) },
		"upper": func(s string) bool { return cased(s, isUpper) },
	} {
		add(name, func(r *value.Run, v []value.Value) (bool, error) {
			s, err := r.Str(v[0])
			return is(s), err
		}, "value")
	}
	remainder := func(name string, by, want value.Value) {
		add(name, func(r *value.Run, v []value.Value) (bool, error) {
			m, err := Binary(r, "%", v[0], by)
			if err != nil {
				return false, err
			}
			return r.Equal(m, want)
		}, "value")
	}
	remainder("odd", int64(2), int64(1))
	remainder("even", int64(2), int64(0))
	add("divisibleby", func(r *value.Run, v []value.Value) (bool, error) {
		m, err := Binary(r, "%", v[0], v[1])
		if err != nil {
			return false, err
		}
		return r.Equal(m, int64(0))
	}, "value", "num")
	add("sameas", func(_ *value.Run, v []value.Value) (bool, error) {
		return value.Same(v[0], v[1]), nil
	}, "value", "other")
	add("in", func(r *value.Run, v []value.Value) (bool, error) { return r.Contains(v[1], v[0]) }, "value", "seq")
	known := func(name string, table func() map[string]*value.Builtin) {
		add(name, func(_ *value.Run, v []value.Value) (bool, error) {
			if _, err := value.HashKey(v[0]); err != nil {
				return false, err
			}
			s, _ := v[0].(string)
			return table()[s] != nil, nil
		}, "value")
	}
	known("filter", func() map[string]*value.Builtin { return filters })
	known("test", func() map[string]*value.Builtin { return tests })
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			add(name, func(r *value.Run, v []value.Value) (bool, error) { return r.Compare(op, v[0], v[1]) }, "/a", "/b")
		}
	}
}

// Test returns the test with a name, or nil.
func Test(name string) *value.Builtin { return tests[name] }
