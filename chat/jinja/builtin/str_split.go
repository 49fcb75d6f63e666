package builtin

import (
	"math"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

func texts(r *value.Run, parts []string) (value.Value, error) {
	n := value.Overhead * len(parts)
	for _, p := range parts {
		n += len(p)
	}
	if err := r.Alloc(n); err != nil {
		return nil, err
	}
	items := make([]value.Value, len(parts))
	for i, p := range parts {
		items[i] = p
	}
	return &value.List{Items: items}, nil
}

func split(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "sep?", "maxsplit?")
		if err != nil {
			return nil, err
		}
		limit, err := value.NeedInt(v[1], -1)
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		limit = r.Most(limit)
		var parts []string
		if v[0] == value.Missing || v[0] == nil {
			if name == "split" {
				parts = splitSpace(s, limit)
			} else {
				parts = rsplitSpace(s, limit)
			}
		} else {
			sep, err := value.NeedText(v[0], "separator")
			if err != nil {
				return nil, err
			}
			switch {
			case sep == "":
				return nil, value.ValueError("empty separator")
			case name == "rsplit":
				parts = rsplit(s, sep, limit)
			default:
				parts = strings.SplitN(s, sep, int(min(limit, math.MaxInt32))+1)
			}
		}
		list, err := texts(r, parts)
		return list, err
	}
}

func splitLinesMethod(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("splitlines", "keepends?")
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	list, err := texts(r, splitLines(s, v[0] != value.Missing && value.Truth(v[0]), r.Most(-1)))
	return list, err
}

func partition(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "/sep")
		if err != nil {
			return nil, err
		}
		sep, err := value.NeedText(v[0], "separator")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, value.ValueError("empty separator")
		}
		s, _ := self.(string)
		if name == "partition" {
			before, after, found := strings.Cut(s, sep)
			if !found {
				sep = ""
			}
			return value.NewTuple(before, sep, after), nil
		}
		at := strings.LastIndex(s, sep)
		if at < 0 {
			return value.NewTuple("", "", s), nil
		}
		return value.NewTuple(s[:at], sep, s[at+len(sep):]), nil
	}
}

func joinMethod(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("join", "/iterable")
	if err != nil {
		return nil, err
	}
	if err := value.CheckIterable(v[0]); err != nil {
		return nil, value.TypeError("can only join an iterable")
	}
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	sep, _ := self.(string)
	parts := make([]string, len(items))
	for i, x := range items {
		s, ok := x.(string)
		if !ok {
			return nil, value.TypeError("sequence item %d: expected str instance, %s found", i, value.TypeName(x))
		}
		parts[i] = s
	}
	s, err := r.Join(parts, sep)
	return s, err
}
