package builtin

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

type filterAdder func(name string, fn func(r *value.Run, v []value.Value) (value.Value, error), params ...string)

// addSequenceFilters adds the filters for sequences and mappings.
func addSequenceFilters(add filterAdder) {
	add("dictsort", filterDictSort, "value", "case_sensitive?", "by?", "reverse?")
	add("first", filterFirst, "seq")
	add("last", filterLast, "seq")
	add("items", filterItems, "value")
	add("join", filterJoin, "value", "d?", "attribute?")
	add("list", func(r *value.Run, v []value.Value) (value.Value, error) {
		items, err := r.Collect(v[0])
		return &value.List{Items: slices.Clip(items)}, err
	}, "value")
	add("min", func(r *value.Run, v []value.Value) (value.Value, error) { return extreme(r, "<", v) },
		"value", "case_sensitive?", "attribute?")
	add("max", func(r *value.Run, v []value.Value) (value.Value, error) { return extreme(r, ">", v) },
		"value", "case_sensitive?", "attribute?")
	add("reverse", filterReverse, "value")
	add("sort", filterSort, "value", "reverse?", "case_sensitive?", "attribute?")
	add("sum", filterSum, "iterable", "attribute?", "start?")
	add("unique", filterUnique, "value", "case_sensitive?", "attribute?")
	filters["map"] = &value.Builtin{Name: "map", Fn: filterMap}
	for name, want := range map[string]bool{"select": true, "reject": false} {
		filters[name] = &value.Builtin{Name: name, Fn: selection(name, want, false)}
		filters[name+"attr"] = &value.Builtin{Name: name + "attr", Fn: selection(name+"attr", want, true)}
	}
}

func attributeParts(r *value.Run, attr value.Value) ([]value.Value, error) {
	if attr == value.Missing || attr == nil {
		return nil, nil
	}
	s, ok := attr.(string)
	if !ok {
		return []value.Value{attr}, nil
	}
	names, err := cut(r, s, ".")
	if err != nil {
		return nil, err
	}
	var parts []value.Value
	for _, p := range names {
		if n, err := parseInt(r, p, 10); err == nil && all(p, isDigitRune) {
			parts = append(parts, n)
		} else {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// cut splits s, and counts the parts.
func cut(r *value.Run, s, sep string) ([]string, error) {
	n := strings.Count(s, sep) + 1
	r.Work(32 * n)
	if err := r.Alloc(2 * value.Overhead * n); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), r.Tick()
}

// attrGetter returns a getter. def replaces undefined values unless it is None or missing. fold ignores case.
func attrGetter(r *value.Run, attr, def value.Value, fold bool) value.Key {
	parts, err := attributeParts(r, attr)
	return func(r *value.Run, v value.Value) (value.Value, error) {
		if err != nil {
			return nil, err
		}
		if err := r.Tick(); err != nil {
			return nil, err
		}
		for _, p := range parts {
			err := r.Tick()
			if err != nil {
				return nil, err
			}
			if v, err = Getitem(r, v, p); err != nil {
				return nil, err
			}
			if _, ok := v.(*value.Undefined); ok && def != value.Missing && def != nil {
				v = def
			}
		}
		if fold {
			r.Read(v)
			v = ignoreCase(v)
		}
		return v, nil
	}
}

func ignoreCase(v value.Value) value.Value {
	if s, ok := v.(string); ok {
		return lower(s)
	}
	return v
}

func filterFirst(r *value.Run, v []value.Value) (value.Value, error) {
	it, err := value.Iterate(v[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := it.Step()
	if ok || err != nil {
		return x, err
	}
	return value.UndefinedHint("No first item, sequence was empty."), nil
}

// reversed returns Python's reversed(v).
func reversed(r *value.Run, v value.Value) (*value.Iterator, error) {
	var items []value.Value
	typ := "reversed"
	switch x := v.(type) {
	case *value.List:
		items, typ = x.Items, "list_reverseiterator"
	case *value.Tuple:
		items = x.Items
	case *value.Dict:
		items, typ = x.Keys(), "dict_reversekeyiterator"
	case *value.Undefined:
	case *value.DictView, *value.Range, string:
		var err error
		if items, err = r.Collect(x); err != nil {
			return nil, err
		}
	default:
		return nil, value.TypeError("'%s' object is not reversible", value.TypeName(v))
	}
	i := len(items)
	return &value.Iterator{Type: typ, Next: func() (value.Value, bool, error) {
		if i == 0 {
			return nil, false, nil
		}
		i--
		return items[i], true, nil
	}}, nil
}

func filterLast(r *value.Run, v []value.Value) (value.Value, error) {
	it, err := reversed(r, v[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := it.Step()
	if ok || err != nil {
		return x, err
	}
	return value.UndefinedHint("No last item, sequence was empty."), nil
}

func filterReverse(r *value.Run, v []value.Value) (value.Value, error) {
	if _, ok := v[0].(string); ok {
		return r.Slice(v[0], &value.Slice{Step: int64(-1)})
	}
	it, err := reversed(r, v[0])
	if err == nil {
		return it, nil
	}
	if !value.IsKind(err, "TypeError") {
		return nil, err
	}
	items, err := r.Collect(v[0])
	if value.IsKind(err, "TypeError") {
		return nil, value.Raise("FilterArgumentError", "argument must be iterable")
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return &value.List{Items: items}, err
}

func filterItems(r *value.Run, v []value.Value) (value.Value, error) {
	i := 0
	return value.Generator(r, "do_items", func() (value.Value, bool, error) {
		switch d := v[0].(type) {
		case *value.Undefined:
			return nil, false, nil
		case *value.Dict:
			if i == d.Len() {
				return nil, false, nil
			}
			i++
			return value.NewTuple(d.Keys()[i-1], d.Values()[i-1]), true, nil
		}
		return nil, false, value.TypeError("Can only get item pairs from a mapping.")
	}), nil
}

func filterJoin(r *value.Run, v []value.Value) (value.Value, error) {
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	if v[2] != value.Missing && v[2] != nil {
		get := attrGetter(r, v[2], value.Missing, false)
		picked := make([]value.Value, len(items))
		for i, x := range items {
			if picked[i], err = get(r, x); err != nil {
				return nil, err
			}
		}
		items = picked
	}
	parts := make([]string, len(items)+1)
	for i, x := range append(slices.Clip(items), value.Optional(v[1], "")) {
		if parts[i], err = r.Str(x); err != nil {
			return nil, err
		}
	}
	s, err := r.Join(parts[:len(items)], parts[len(items)])
	return s, err
}

func extreme(r *value.Run, op string, v []value.Value) (value.Value, error) {
	it, err := value.Iterate(v[0])
	if err != nil {
		return nil, err
	}
	get := attrGetter(r, v[2], value.Missing, !value.IsTrue(v[1]))
	best, ok, err := it.Step()
	if err != nil {
		return nil, err
	}
	if !ok {
		return value.UndefinedHint("No aggregated item, sequence was empty."), nil
	}
	key, err := get(r, best)
	if err != nil {
		return nil, err
	}
	for {
		x, ok, err := it.Step()
		if !ok || err != nil {
			return best, err
		}
		k, err := get(r, x)
		if err != nil {
			return nil, err
		}
		better, err := r.Ordered(op, k, key, 0)
		if err != nil {
			return nil, err
		}
		if better {
			best, key = x, k
		}
	}
}

func filterSum(r *value.Run, v []value.Value) (value.Value, error) {
	total := value.Optional(v[2], int64(0))
	if _, ok := total.(string); ok {
		return nil, value.TypeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	it, err := value.Iterate(v[0])
	if err != nil {
		return nil, err
	}
	get := attrGetter(r, v[1], value.Missing, false)
	for {
		x, ok, err := it.Step()
		if !ok || err != nil {
			return total, err
		}
		if x, err = get(r, x); err != nil {
			return nil, err
		}
		if total, err = r.Binary("+", total, x); err != nil {
			return nil, err
		}
	}
}
