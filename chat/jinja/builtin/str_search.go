package builtin

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// part cuts s by the optional start and end arguments of find and similar methods. ok is false if start is after the
// end.
func part(s string, from, to value.Value) (cut string, start int64, ok bool, err error) {
	if (from == value.Missing || from == nil) && (to == value.Missing || to == nil) {
		return s, 0, true, nil
	}
	n := int64(value.RuneCount(s))
	index := func(v value.Value, def int64) int64 {
		if v == value.Missing || v == nil || err != nil {
			return def
		}
		var i int64
		if i, err = value.ClampInt(v); err != nil {
			err = value.TypeError("slice indices must be integers or None or have an __index__ method")
		}
		if i < 0 {
			i = max(i+n, 0)
		}
		return i
	}
	i := index(from, 0)
	j := min(index(to, n), n)
	if err != nil || i > j {
		return "", i, false, err
	}
	return value.Substring(s, int(i), int(j)), i, true, nil
}

func affix(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "/affix", "/start?", "/end?")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		s, _, ok, err := part(s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		has := func(x value.Value) (bool, error) {
			t, isText := x.(string)
			if !isText {
				return false, value.TypeError("%s first arg must be str or a tuple of str, not %s", name, value.TypeName(x))
			}
			if name == "startswith" {
				return ok && strings.HasPrefix(s, t), nil
			}
			return ok && strings.HasSuffix(s, t), nil
		}
		list, isTuple := v[0].(*value.Tuple)
		if !isTuple {
			return has(v[0])
		}
		for _, x := range list.Items {
			if yes, err := has(x); yes || err != nil {
				return yes, err
			}
		}
		return false, nil
	}
}

// search reads the arguments of find and similar methods: s is the part of self to search for sub, and from its start.
// ok is false if the start is after the end.
func search(
	r *value.Run, name string, self value.Value, a *value.Arguments,
) (s, sub string, from int64, ok bool, err error) {
	v, err := a.Bind(name, "/sub", "/start?", "/end?")
	if err != nil {
		return "", "", 0, false, err
	}
	if sub, err = value.NeedText(v[0], "argument 1"); err != nil {
		return "", "", 0, false, err
	}
	s, _ = self.(string)
	s, from, ok, err = part(s, v[1], v[2])
	return s, sub, from, ok, err
}

func find(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		s, sub, from, ok, err := search(r, name, self, a)
		if err != nil {
			return nil, err
		}
		at := -1
		if ok {
			if name[0] == 'r' {
				at = strings.LastIndex(s, sub)
			} else {
				at = strings.Index(s, sub)
			}
		}
		if at < 0 {
			if strings.HasSuffix(name, "index") {
				return nil, value.ValueError("substring not found")
			}
			return int64(-1), nil
		}
		return from + int64(value.RuneCount(s[:at])), nil
	}
}

func countMethod(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	s, sub, _, ok, err := search(r, "count", self, a)
	if !ok || err != nil {
		return int64(0), err
	}
	return int64(strings.Count(s, sub)), nil
}

func replaceMethod(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("replace", "/old", "/new", "/count?")
	if err != nil {
		return nil, err
	}
	old, err := value.NeedText(v[0], "replace() argument 1")
	if err != nil {
		return nil, err
	}
	repl, err := value.NeedText(v[1], "replace() argument 2")
	if err != nil {
		return nil, err
	}
	n, err := value.NeedInt(v[2], -1)
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	out, err := replace(r, s, old, repl, n)
	return out, err
}

func replace(r *value.Run, s, old, repl string, n int64) (string, error) {
	times := int64(strings.Count(s, old))
	if n >= 0 {
		times = min(times, n)
	}
	if err := r.Alloc(len(s)); err != nil {
		return "", err
	}
	if err := r.AllocTimes(len(repl), times); err != nil {
		return "", err
	}
	return strings.Replace(s, old, repl, int(times)), nil
}

func remove(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "/affix")
		if err != nil {
			return nil, err
		}
		t, err := value.NeedText(v[0], "argument")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		if name == "removeprefix" {
			return strings.TrimPrefix(s, t), nil
		}
		return strings.TrimSuffix(s, t), nil
	}
}
