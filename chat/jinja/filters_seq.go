package jinja

import (
	"slices"
	"strings"
)

type filterAdder func(name string, fn func(r *run, v []Value) (Value, error), params ...string)

// addSequenceFilters adds the filters for sequences and mappings.
func addSequenceFilters(add filterAdder) {
	add("batch", filterBatch, "value", "linecount", "fill_with?")
	add("slice", filterSlice, "value", "slices", "fill_with?")
	add("dictsort", filterDictSort, "value", "case_sensitive?", "by?", "reverse?")
	add("first", filterFirst, "seq")
	add("last", filterLast, "seq")
	add("groupby", filterGroupBy, "value", "attribute", "default?", "case_sensitive?")
	add("items", filterItems, "value")
	add("join", filterJoin, "value", "d?", "attribute?")
	add("list", func(r *run, v []Value) (Value, error) {
		items, err := r.collect(v[0])
		return &List{slices.Clip(items)}, err
	}, "value")
	add("min", func(r *run, v []Value) (Value, error) { return r.extreme("<", v) },
		"value", "case_sensitive?", "attribute?")
	add("max", func(r *run, v []Value) (Value, error) { return r.extreme(">", v) },
		"value", "case_sensitive?", "attribute?")
	add("reverse", filterReverse, "value")
	add("sort", filterSort, "value", "reverse?", "case_sensitive?", "attribute?")
	add("sum", filterSum, "iterable", "attribute?", "start?")
	add("unique", filterUnique, "value", "case_sensitive?", "attribute?")
	filters["map"] = &builtin{name: "map", fn: filterMap}
	for name, want := range map[string]bool{"select": true, "reject": false} {
		filters[name] = &builtin{name: name, fn: selection(name, want, false)}
		filters[name+"attr"] = &builtin{name: name + "attr", fn: selection(name+"attr", want, true)}
	}
}

// getter returns the part of an item that a filter's attribute argument selects: "a.b.0", a number, or None for the
// item.
type getter func(r *run, v Value) (Value, error)

func attributeParts(attr Value) []Value {
	if attr == missing || attr == nil {
		return nil
	}
	s, ok := attr.(string)
	if !ok {
		return []Value{attr}
	}
	var parts []Value
	for _, p := range strings.Split(s, ".") {
		if n, err := parseInt(p, 10); err == nil && all(p, isDigitRune) {
			parts = append(parts, n)
		} else {
			parts = append(parts, p)
		}
	}
	return parts
}

// attrGetter returns a getter. def replaces undefined values unless it is None or missing. fold ignores case.
func attrGetter(attr, def Value, fold bool) getter {
	parts := attributeParts(attr)
	return func(r *run, v Value) (Value, error) {
		if err := r.tick(); err != nil {
			return nil, err
		}
		for _, p := range parts {
			var err error
			if v, err = getitem(r, v, p); err != nil {
				return nil, err
			}
			if _, ok := v.(*undefined); ok && def != missing && def != nil {
				v = def
			}
		}
		if fold {
			v = ignoreCase(v)
		}
		return v, nil
	}
}

func ignoreCase(v Value) Value {
	if s, ok := v.(string); ok {
		return lower(s)
	}
	return v
}

func isTrue(v Value) bool { return v != missing && truth(v) }

func filterBatch(r *run, v []Value) (Value, error) {
	var it *iterator
	return generator(r, "do_batch", func() (Value, bool, error) {
		if it == nil {
			var err error
			if it, err = iterate(v[0]); err != nil {
				return nil, false, err
			}
		}
		var row []Value
		for {
			if len(row) > 0 {
				if eq, err := r.equal(int64(len(row)), v[1]); err != nil {
					return nil, false, err
				} else if eq {
					return &List{row}, true, nil
				}
			}
			x, ok, err := it.step()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			if len(row) == 0 {
				// The reference compares the length with the width before appending, so a width of 0 yields one empty row first.
				if n, ok := smallInt(v[1]); ok && n == 0 {
					v[1] = int64(-1)
					it = r.prepend(x, it)
					return &List{}, true, nil
				}
			}
			if err := r.alloc(valueSize); err != nil {
				return nil, false, err
			}
			row = append(row, x)
		}
		if len(row) == 0 {
			return nil, false, nil
		}
		if v[2] != missing && v[2] != nil {
			n, ok := v[1], isNumber(v[1])
			if !ok {
				return nil, false, typeError("'<' not supported between instances of 'int' and '%s'", typeName(n))
			}
			c, _ := compareNumbers(int64(len(row)), n)
			if c < 0 {
				want, err := clampInt(n)
				if err != nil {
					return nil, false, err
				}
				if err := r.allocTimes(valueSize, want-int64(len(row))); err != nil {
					return nil, false, err
				}
				for int64(len(row)) < want {
					row = append(row, v[2])
				}
			}
		}
		it = sliceIter(nil)
		return &List{row}, true, nil
	}), nil
}

func (r *run) prepend(v Value, it *iterator) *iterator {
	first := true
	return &iterator{run: r, typ: it.typ, next: func() (Value, bool, error) {
		if first {
			first = false
			return v, true, nil
		}
		return it.step()
	}}
}

func filterSlice(r *run, v []Value) (Value, error) {
	var items []Value
	var n, number, offset int64
	started := false
	return generator(r, "sync_do_slice", func() (Value, bool, error) {
		if !started {
			started = true
			var err error
			if items, err = r.collect(v[0]); err != nil {
				return nil, false, err
			}
			if n, err = clampInt(v[1]); err != nil {
				return nil, false, unsupported("//", int64(0), v[1])
			}
			if n == 0 {
				return nil, false, raise("ZeroDivisionError", "integer division or modulo by zero")
			}
		}
		if number >= n {
			return nil, false, nil
		}
		if err := r.tick(); err != nil {
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
		if err := r.alloc((len(row) + 1) * valueSize); err != nil {
			return nil, false, err
		}
		if v[2] != missing && v[2] != nil && number >= extra {
			row = append(row, v[2])
		}
		number++
		return &List{row}, true, nil
	}), nil
}

// sortBy sorts items by keys. The sort is stable, also if reversed.
func (r *run) sortBy(items []Value, key getter, reversed bool) ([]Value, error) {
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	if err := r.alloc(3 * len(items) * valueSize); err != nil {
		return nil, err
	}
	for i, x := range items {
		k, err := key(r, x)
		if err != nil {
			return nil, err
		}
		pairs[i] = pair{k, x}
	}
	if reversed {
		slices.Reverse(pairs)
	}
	var failed error
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if failed != nil {
			return 0
		}
		if failed = r.tick(); failed != nil {
			return 0
		}
		less, err := r.ordered("<", a.key, b.key, 0)
		if err == nil && less {
			return -1
		}
		if err == nil {
			if less, err = r.ordered("<", b.key, a.key, 0); err == nil && less {
				return 1
			}
		}
		failed = err
		return 0
	})
	if failed != nil {
		return nil, failed
	}
	if reversed {
		slices.Reverse(pairs)
	}
	out := make([]Value, len(pairs))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out, nil
}

func filterDictSort(r *run, v []Value) (Value, error) {
	pos := 0
	switch by, _ := optional(v[2], "key").(string); by {
	case "key":
	case "value":
		pos = 1
	default:
		return nil, raise("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	d, ok := v[0].(*Dict)
	if !ok {
		if u, is := v[0].(*undefined); is {
			return nil, u.fail()
		}
		return nil, raise("AttributeError", "'%s' object has no attribute 'items'", typeName(v[0]))
	}
	items := make([]Value, d.Len())
	for i := range items {
		items[i] = tuple(d.allKeys()[i], d.allValues()[i])
	}
	out, err := r.sortBy(items, func(r *run, x Value) (Value, error) {
		k := x.(*Tuple).Items[pos]
		if !isTrue(v[1]) {
			k = ignoreCase(k)
		}
		return k, nil
	}, isTrue(v[3]))
	return &List{out}, err
}

func filterFirst(r *run, v []Value) (Value, error) {
	it, err := iterate(v[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := it.step()
	if ok || err != nil {
		return x, err
	}
	return undefinedHint("No first item, sequence was empty."), nil
}

// reversed returns Python's reversed(v).
func (r *run) reversed(v Value) (*iterator, error) {
	var items []Value
	typ := "reversed"
	switch x := v.(type) {
	case *List:
		items, typ = x.Items, "list_reverseiterator"
	case *Tuple:
		items = x.Items
	case *Dict:
		items, typ = x.allKeys(), "dict_reversekeyiterator"
	case *undefined:
	case *dictView, *Range, string, Bytes:
		var err error
		if items, err = r.collect(x); err != nil {
			return nil, err
		}
	default:
		return nil, typeError("'%s' object is not reversible", typeName(v))
	}
	i := len(items)
	return &iterator{typ: typ, next: func() (Value, bool, error) {
		if i == 0 {
			return nil, false, nil
		}
		i--
		return items[i], true, nil
	}}, nil
}

func filterLast(r *run, v []Value) (Value, error) {
	it, err := r.reversed(v[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := it.step()
	if ok || err != nil {
		return x, err
	}
	return undefinedHint("No last item, sequence was empty."), nil
}

func filterReverse(r *run, v []Value) (Value, error) {
	if _, ok := v[0].(string); ok {
		return r.slice(v[0], &slice{step: int64(-1)})
	}
	it, err := r.reversed(v[0])
	if err == nil {
		return it, nil
	}
	if !isKind(err, "TypeError") {
		return nil, err
	}
	items, err := r.collect(v[0])
	if isKind(err, "TypeError") {
		return nil, raise("FilterArgumentError", "argument must be iterable")
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{items}, err
}

func filterGroupBy(r *run, v []Value) (Value, error) {
	fold := !isTrue(v[3])
	key := attrGetter(v[1], v[2], fold)
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	sorted, err := r.sortBy(items, key, false)
	if err != nil {
		return nil, err
	}
	out := &List{}
	var current Value
	for i, x := range sorted {
		k, err := key(r, x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if eq, err := r.equal(current, k); err != nil {
				return nil, err
			} else if eq {
				l := out.Items[len(out.Items)-1].(*Tuple).Items[1].(*List)
				l.Items = append(l.Items, x)
				continue
			}
		}
		current = k
		name := k
		if fold {
			if name, err = attrGetter(v[1], v[2], false)(r, x); err != nil {
				return nil, err
			}
		}
		out.Items = append(out.Items, &Tuple{Items: []Value{name, &List{[]Value{x}}}, group: true})
	}
	return out, nil
}

func filterItems(r *run, v []Value) (Value, error) {
	i := 0
	return generator(r, "do_items", func() (Value, bool, error) {
		switch d := v[0].(type) {
		case *undefined:
			return nil, false, nil
		case *Dict:
			if i == d.Len() {
				return nil, false, nil
			}
			i++
			return tuple(d.allKeys()[i-1], d.allValues()[i-1]), true, nil
		}
		return nil, false, typeError("Can only get item pairs from a mapping.")
	}), nil
}

func filterJoin(r *run, v []Value) (Value, error) {
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	if v[2] != missing && v[2] != nil {
		get := attrGetter(v[2], missing, false)
		picked := make([]Value, len(items))
		for i, x := range items {
			if picked[i], err = get(r, x); err != nil {
				return nil, err
			}
		}
		items = picked
	}
	parts := make([]string, len(items)+1)
	for i, x := range append(slices.Clip(items), optional(v[1], "")) {
		if parts[i], err = r.str(x); err != nil {
			return nil, err
		}
	}
	s, err := r.join(parts[:len(items)], parts[len(items)])
	return s, err
}

func (r *run) extreme(op string, v []Value) (Value, error) {
	it, err := iterate(v[0])
	if err != nil {
		return nil, err
	}
	get := attrGetter(v[2], missing, !isTrue(v[1]))
	best, ok, err := it.step()
	if err != nil {
		return nil, err
	}
	if !ok {
		return undefinedHint("No aggregated item, sequence was empty."), nil
	}
	key, err := get(r, best)
	if err != nil {
		return nil, err
	}
	for {
		x, ok, err := it.step()
		if !ok || err != nil {
			return best, err
		}
		k, err := get(r, x)
		if err != nil {
			return nil, err
		}
		better, err := r.ordered(op, k, key, 0)
		if err != nil {
			return nil, err
		}
		if better {
			best, key = x, k
		}
	}
}

func filterSort(r *run, v []Value) (Value, error) {
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	fold := !isTrue(v[2])
	attrs := []Value{v[3]}
	if s, ok := v[3].(string); ok {
		attrs = nil
		for _, a := range strings.Split(s, ",") {
			attrs = append(attrs, a)
		}
	}
	var getters []getter
	for _, a := range attrs {
		getters = append(getters, attrGetter(a, missing, fold))
	}
	out, err := r.sortBy(items, func(r *run, x Value) (Value, error) {
		key := &List{make([]Value, len(getters))}
		for i, g := range getters {
			var err error
			if key.Items[i], err = g(r, x); err != nil {
				return nil, err
			}
		}
		return key, nil
	}, isTrue(v[1]))
	return &List{out}, err
}

func filterSum(r *run, v []Value) (Value, error) {
	total := optional(v[2], int64(0))
	if _, ok := total.(string); ok {
		return nil, typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	it, err := iterate(v[0])
	if err != nil {
		return nil, err
	}
	get := attrGetter(v[1], missing, false)
	for {
		x, ok, err := it.step()
		if !ok || err != nil {
			return total, err
		}
		if x, err = get(r, x); err != nil {
			return nil, err
		}
		if total, err = r.binary("+", total, x); err != nil {
			return nil, err
		}
	}
}

func filterUnique(r *run, v []Value) (Value, error) {
	get := attrGetter(v[2], missing, !isTrue(v[1]))
	var it *iterator
	seen := map[any]bool{}
	return generator(r, "sync_do_unique", func() (Value, bool, error) {
		if it == nil {
			var err error
			if it, err = iterate(v[0]); err != nil {
				return nil, false, err
			}
		}
		for {
			x, ok, err := it.step()
			if !ok || err != nil {
				return nil, false, err
			}
			k, err := get(r, x)
			if err != nil {
				return nil, false, err
			}
			h, err := hashKey(k)
			if err != nil {
				return nil, false, err
			}
			if seen[h] {
				continue
			}
			if err := r.alloc(4 * valueSize); err != nil {
				return nil, false, err
			}
			seen[h] = true
			return x, true, nil
		}
	}), nil
}

// lazy returns a generator over a value. Its first step calls prepare. It yields nothing if the value is false.
func (r *run) lazy(name string, over Value, prepare func() (func(Value) (Value, bool, error), error)) *iterator {
	var it *iterator
	var fn func(Value) (Value, bool, error)
	return generator(r, name, func() (Value, bool, error) {
		if it == nil {
			if yes, err := r.truth(over); err != nil || !yes {
				return nil, false, err
			}
			var err error
			if fn, err = prepare(); err != nil {
				return nil, false, err
			}
			if it, err = iterate(over); err != nil {
				return nil, false, err
			}
		}
		for {
			x, ok, err := it.step()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.tick(); err != nil {
				return nil, false, err
			}
			if y, keep, err := fn(x); keep || err != nil {
				return y, keep, err
			}
		}
	})
}

// named calls the filter or test with this name.
func (r *run) named(table map[string]*builtin, what string, name, v Value, rest []Value, a *arguments) (Value, error) {
	s, ok := name.(string)
	b := table[s]
	if !ok || b == nil {
		if _, err := hashKey(name); err != nil {
			return nil, err
		}
		t, err := r.repr(name)
		if err != nil {
			return nil, err
		}
		return nil, raise("TemplateRuntimeError", "No %s named %s.", what, t)
	}
	return r.callBuiltin(b, &arguments{pos: append([]Value{v}, rest...), names: a.names, named: a.named})
}

func filterMap(r *run, a *arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, typeError("map() missing argument 'value'")
	}
	rest := a.pos[1:]
	return r.lazy("sync_do_map", a.pos[0], func() (func(Value) (Value, bool, error), error) {
		if at := slices.Index(a.names, "attribute"); len(rest) == 0 && at >= 0 {
			var def Value = missing
			for i, n := range a.names {
				if n == "default" {
					def = a.named[i]
				} else if n != "attribute" {
					return nil, raise("FilterArgumentError", "Unexpected keyword argument '%s'", n)
				}
			}
			get := attrGetter(a.named[at], def, false)
			return func(x Value) (Value, bool, error) { y, err := get(r, x); return y, true, err }, nil
		}
		if len(rest) == 0 {
			return nil, raise("FilterArgumentError", "map requires a filter argument")
		}
		return func(x Value) (Value, bool, error) {
			y, err := r.named(filters, "filter", rest[0], x, rest[1:], a)
			return y, true, err
		}, nil
	}), nil
}

func selection(name string, want, attr bool) func(r *run, a *arguments) (Value, error) {
	return func(r *run, a *arguments) (Value, error) {
		if len(a.pos) == 0 {
			return nil, typeError("%s() missing argument 'value'", name)
		}
		rest := a.pos[1:]
		return r.lazy("select_or_reject", a.pos[0], func() (func(Value) (Value, bool, error), error) {
			var get getter
			rest := rest
			if attr {
				if len(rest) == 0 {
					return nil, raise("FilterArgumentError", "Missing parameter for attribute name")
				}
				get, rest = attrGetter(rest[0], missing, false), rest[1:]
			}
			return func(x Value) (Value, bool, error) {
				y := x
				var err error
				if get != nil {
					if y, err = get(r, x); err != nil {
						return nil, false, err
					}
				}
				if len(rest) > 0 {
					if y, err = r.named(tests, "test", rest[0], y, rest[1:], a); err != nil {
						return nil, false, err
					}
				}
				yes, err := r.truth(y)
				return x, yes == want, err
			}, nil
		}), nil
	}
}
