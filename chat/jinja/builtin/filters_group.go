package builtin

import (
	"slices"

	"github.com/ingotml/ingot/chat/jinja/value"
)

func filterBatch(r *value.Run, v []value.Value) (value.Value, error) {
	var it *value.Iterator
	return value.Generator(r, "do_batch", func() (value.Value, bool, error) {
		if it == nil {
			var err error
			if it, err = value.Iterate(v[0]); err != nil {
				return nil, false, err
			}
		}
		var row []value.Value
		for {
			if len(row) > 0 {
				if eq, err := r.Equal(int64(len(row)), v[1]); err != nil {
					return nil, false, err
				} else if eq {
					return &value.List{Items: row}, true, nil
				}
			}
			x, ok, err := it.Step()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			if len(row) == 0 {
				// The reference compares the length with the width before appending, so a width of 0 yields one empty row first.
				if n, ok := value.SmallInt(v[1]); ok && n == 0 {
					v[1] = int64(-1)
					it = prepend(r, x, it)
					return &value.List{}, true, nil
				}
			}
			if err := r.Alloc(value.Overhead); err != nil {
				return nil, false, err
			}
			row = append(row, x)
		}
		if len(row) == 0 {
			return nil, false, nil
		}
		if v[2] != value.Missing && v[2] != nil {
			n, ok := v[1], value.IsNumber(v[1])
			if !ok {
				return nil, false, value.TypeError("'<' not supported between instances of 'int' and '%s'", value.TypeName(n))
			}
			c, _ := value.CompareNumbers(int64(len(row)), n)
			if c < 0 {
				want, err := value.ClampInt(n)
				if err != nil {
					return nil, false, err
				}
				if err := r.AllocTimes(value.Overhead, want-int64(len(row))); err != nil {
					return nil, false, err
				}
				for int64(len(row)) < want {
					row = append(row, v[2])
				}
			}
		}
		it = value.SliceIter(nil)
		return &value.List{Items: row}, true, nil
	}), nil
}

func prepend(r *value.Run, v value.Value, it *value.Iterator) *value.Iterator {
	first := true
	return &value.Iterator{Run: r, Type: it.Type, Next: func() (value.Value, bool, error) {
		if first {
			first = false
			return v, true, nil
		}
		return it.Step()
	}}
}

func filterSlice(r *value.Run, v []value.Value) (value.Value, error) {
	var items []value.Value
	var n, number, offset int64
	started := false
	return value.Generator(r, "sync_do_slice", func() (value.Value, bool, error) {
		if !started {
			started = true
			var err error
			if items, err = r.Collect(v[0]); err != nil {
				return nil, false, err
			}
			if n, err = value.ClampInt(v[1]); err != nil {
				return nil, false, value.Unsupported("//", int64(0), v[1])
			}
			if n == 0 {
				return nil, false, value.Raise("ZeroDivisionError", "integer division or modulo by zero")
			}
		}
		if number >= n {
			return nil, false, nil
		}
		if err := r.Tick(); err != nil {
			return nil, false, err
		}
		size := int64(len(items))
		per, extra := size/n, size%n
		start := offset + number*per
		if number < extra {
			offset++
		}
		end := offset + (number+1)*per
		row := slices.Clone(items[start:end])
		if err := r.Alloc((len(row) + 1) * value.Overhead); err != nil {
			return nil, false, err
		}
		if v[2] != value.Missing && v[2] != nil && number >= extra {
			row = append(row, v[2])
		}
		number++
		return &value.List{Items: row}, true, nil
	}), nil
}

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

func filterGroupBy(r *value.Run, v []value.Value) (value.Value, error) {
	fold := !value.IsTrue(v[3])
	key := attrGetter(r, v[1], v[2], fold)
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	sorted, err := r.SortBy(items, key, false)
	if err != nil {
		return nil, err
	}
	out := &value.List{}
	var current value.Value
	for i, x := range sorted {
		k, err := key(r, x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if eq, err := r.Equal(current, k); err != nil {
				return nil, err
			} else if eq {
				l := out.Items[len(out.Items)-1].(*value.Tuple).Items[1].(*value.List)
				l.Items = append(l.Items, x)
				continue
			}
		}
		current = k
		name := k
		if fold {
			if name, err = attrGetter(r, v[1], v[2], false)(r, x); err != nil {
				return nil, err
			}
		}
		group := []value.Value{name, value.NewList(x)}
		out.Items = append(out.Items, &value.Tuple{Items: group, Group: true})
	}
	return out, nil
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
