package jinja

// tests are jinja2's tests, the right-hand sides of "is".
var tests map[string]*builtin

func init() {
	tests = map[string]*builtin{}
	add := func(name string, fn func(r *run, v []Value) (bool, error), params ...string) {
		tests[name] = &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) {
			v, err := a.bind(name, params...)
			if err != nil {
				return nil, err
			}
			ok, err := fn(r, v)
			return ok, err
		}}
	}
	simple := func(name string, fn func(v Value) bool) {
		add(name, func(_ *run, v []Value) (bool, error) { return fn(v[0]), nil }, "value")
	}
	isUndefined := func(v Value) bool { _, ok := v.(*undefined); return ok }
	simple("defined", func(v Value) bool { return !isUndefined(v) })
	simple("undefined", isUndefined)
	simple("none", func(v Value) bool { return v == nil })
	simple("boolean", func(v Value) bool { _, ok := v.(bool); return ok })
	simple("true", func(v Value) bool { return v == true })
	simple("false", func(v Value) bool { return v == false })
	simple("integer", func(v Value) bool { _, ok := integer(v); _, b := v.(bool); return ok && !b })
	simple("float", func(v Value) bool { _, ok := v.(float64); return ok })
	simple("number", isNumber)
	simple("string", func(v Value) bool { _, ok := v.(string); return ok })
	simple("mapping", func(v Value) bool { _, ok := v.(*Dict); return ok })
	simple("iterable", func(v Value) bool { return iterable(v) == nil })
	simple("sequence", func(v Value) bool {
		switch v.(type) {
		case string, Bytes, *List, *Tuple, *Dict, *Range, *undefined:
			return true
		}
		return false
	})
	tests["escaped"] = unsupportedFeature("test", "escaped")
	add("callable", func(_ *run, v []Value) (bool, error) { return callable(v[0]), nil }, "/obj")
	for name, is := range map[string]func(string) bool{
		"lower": func(s string) bool { return cased(s, isLower) },
		"upper": func(s string) bool { return cased(s, isUpper) },
	} {
		add(name, func(r *run, v []Value) (bool, error) {
			s, err := r.str(v[0])
			return is(s), err
		}, "value")
	}
	remainder := func(name string, by, want Value) {
		add(name, func(r *run, v []Value) (bool, error) {
			m, err := binaryOp(r, "%", v[0], by)
			if err != nil {
				return false, err
			}
			return r.equal(m, want)
		}, "value")
	}
	remainder("odd", int64(2), int64(1))
	remainder("even", int64(2), int64(0))
	add("divisibleby", func(r *run, v []Value) (bool, error) {
		m, err := binaryOp(r, "%", v[0], v[1])
		if err != nil {
			return false, err
		}
		return r.equal(m, int64(0))
	}, "value", "num")
	add("sameas", func(_ *run, v []Value) (bool, error) { return same(v[0], v[1]), nil }, "value", "other")
	add("in", func(r *run, v []Value) (bool, error) { return r.contains(v[1], v[0]) }, "value", "seq")
	known := func(name string, table func() map[string]*builtin) {
		add(name, func(_ *run, v []Value) (bool, error) {
			if _, err := hashKey(v[0]); err != nil {
				return false, err
			}
			s, _ := v[0].(string)
			return table()[s] != nil, nil
		}, "value")
	}
	known("filter", func() map[string]*builtin { return filters })
	known("test", func() map[string]*builtin { return tests })
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			add(name, func(r *run, v []Value) (bool, error) { return r.compare(op, v[0], v[1]) }, "/a", "/b")
		}
	}
}

// testNamed returns the test with a name, or nil.
func testNamed(name string) *builtin { return tests[name] }
