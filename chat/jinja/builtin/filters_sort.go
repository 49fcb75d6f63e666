package builtin

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

func filterDictSort(r *value.Run, v []value.Value) (value.Value, error) {
	pos := 0
	switch by, _ := value.Optional(v[2], "key").(string); by {
	case "key":
	case "value":
		pos = 1
	default:
		return nil, value.Raise("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	d, ok := v[0].(*value.Dict)
	if !ok {
		if u, is := v[0].(*value.Undefined); is {
			return nil, u.Fail()
		}
		return nil, value.Raise("AttributeError", "'%s' object has no attribute 'items'", value.TypeName(v[0]))
	}
	items := make([]value.Value, d.Len())
	for i := range items {
		items[i] = value.NewTuple(d.Keys()[i], d.Values()[i])
	}
	out, err := r.SortBy(items, func(r *value.Run, x value.Value) (value.Value, error) {
		k := x.(*value.Tuple).Items[pos]
		if !value.IsTrue(v[1]) {
			k = ignoreCase(k)
		}
		return k, nil
	}, value.IsTrue(v[3]))
	return &value.List{Items: out}, err
}

func filterSort(r *value.Run, v []value.Value) (value.Value, error) {
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	fold := !value.IsTrue(v[2])
	attrs := []value.Value{v[3]}
	if s, ok := v[3].(string); ok {
		names, err := cut(r, s, ",")
		if err != nil {
			return nil, err
		}
		attrs = nil
		for _, a := range names {
			attrs = append(attrs, a)
		}
	}
	var getters []value.Key
	for _, a := range attrs {
		getters = append(getters, attrGetter(r, a, value.Missing, fold))
	}
	out, err := r.SortBy(items, func(r *value.Run, x value.Value) (value.Value, error) {
		key := &value.List{Items: make([]value.Value, len(getters))}
		for i, g := range getters {
			var err error
			if key.Items[i], err = g(r, x); err != nil {
				return nil, err
			}
		}
		return key, nil
	}, value.IsTrue(v[1]))
	return &value.List{Items: out}, err
}

func filterUnique(r *value.Run, v []value.Value) (value.Value, error) {
	get := attrGetter(r, v[2], value.Missing, !value.IsTrue(v[1]))
	var it *value.Iterator
	seen := map[any]bool{}
	return value.Generator(r, "sync_do_unique", func() (value.Value, bool, error) {
		if it == nil {
			var err error
			if it, err = value.Iterate(v[0]); err != nil {
				return nil, false, err
			}
		}
		for {
			x, ok, err := it.Step()
			if !ok || err != nil {
				return nil, false, err
			}
			k, err := get(r, x)
			if err != nil {
				return nil, false, err
			}
			h, err := value.HashKey(k)
			if err != nil {
				return nil, false, err
			}
			if seen[h] {
				continue
			}
			if err := r.Alloc(4 * value.Overhead); err != nil {
				return nil, false, err
			}
			seen[h] = true
			return x, true, nil
		}
	}), nil
}
