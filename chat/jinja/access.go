package jinja

import (
	"math"
	"strings"
)

// dunders are attributes of every Python object, which the sandbox hides.
var dunders = map[string]bool{}

func init() {
	const names = "class delattr dir doc eq format ge getattribute getstate gt hash init init_subclass le lt ne new " +
		"reduce reduce_ex repr setattr sizeof str subclasshook"
	for _, n := range strings.Fields(names) {
		dunders["__"+n+"__"] = true
	}
}

// Mutating methods, which the sandbox hides.
var (
	listMutators = set("append clear pop reverse insert sort extend remove")
	dictMutators = set("clear pop popitem setdefault update")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// method is a method of a type.
type method func(r *run, self Value, a *arguments) (Value, error)

func bound(name string, self Value, m method) *builtin {
	return &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) { return m(r, self, a) }}
}

// attribute returns Python's getattr(obj, name) in the sandbox. ok is false for an AttributeError.
func (r *run) attribute(obj Value, name string) (v Value, ok bool, err error) {
	if dunders[name] {
		return unsafe(obj, name), true, nil
	}
	var methods map[string]method
	switch o := obj.(type) {
	case string:
		methods = strMethods
	case Bytes:
		methods = bytesMethods
	case *List:
		if listMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = listMethods
	case *Tuple:
		if o.group && name == "grouper" {
			return o.Items[0], true, nil
		}
		if o.group && name == "list" {
			return o.Items[1], true, nil
		}
		methods = tupleMethods
	case *Dict:
		if dictMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = dictMethods
	case *namespace:
		v, ok := o.attrs.Get(name)
		return v, ok, nil
	case *loopContext:
		return o.attr(r, name)
	case *undefined:
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return nil, false, nil
		}
		return nil, false, o.fail()
	case *macro:
		return o.attr(name)
	case *cycler:
		return o.attr(name)
	case *joiner:
		switch name {
		case "sep":
			return o.sep, true, nil
		case "used":
			return o.used, true, nil
		}
	case *Range:
		switch name {
		case "start":
			return o.start, true, nil
		case "stop":
			return o.stop, true, nil
		case "step":
			return o.step, true, nil
		}
		methods = tupleMethods
	case *dictView:
		switch name {
		case "mapping":
			return o.d, true, nil
		case "isdisjoint":
			if o.kind != "values" {
				return bound(name, o, isDisjoint), true, nil
			}
		}
	case *dictType:
		if name == "fromkeys" {
			return bound(name, nil, dictFromKeys), true, nil
		}
	case bool, int64, float64:
		return numberAttr(obj, name)
	default:
		if isNumber(obj) {
			return numberAttr(obj, name)
		}
	}
	if m, ok := methods[name]; ok {
		return bound(name, obj, m), true, nil
	}
	return nil, false, nil
}

func unsafe(obj Value, name string) *undefined {
	return &undefined{hint: "access to attribute '" + name + "' of '" + typeName(obj) + "' object is unsafe.",
		obj: obj, name: name, kind: "SecurityError"}
}

// getattr returns obj.name: the attribute or else the item.
func (r *run) getattr(obj Value, name string) (Value, error) {
	if d, ok := obj.(*Dict); ok && dictMethods[name] == nil && !dictMutators[name] && !dunders[name] {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
		return undefinedOf(obj, name), nil
	}
	v, ok, err := r.attribute(obj, name)
	if ok || err != nil {
		return v, err
	}
	v, err = r.index(obj, name)
	if isLookup(err) {
		return undefinedOf(obj, name), nil
	}
	return v, err
}

// getitem returns obj[key]: the item or else, if key is a string, the attribute.
func (r *run) getitem(obj, key Value) (Value, error) {
	v, err := r.index(obj, key)
	if !isLookup(err) {
		return v, err
	}
	if name, ok := key.(string); ok {
		v, ok, err := r.attribute(obj, name)
		if ok || err != nil {
			return v, err
		}
	}
	return undefinedOf(obj, key), nil
}

// index returns Python's obj[key].
func (r *run) index(obj, key Value) (Value, error) {
	switch o := obj.(type) {
	case *Dict:
		v, ok, err := o.get(key)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, raise("KeyError", "no such key")
		}
		return v, nil
	case *undefined:
		return nil, o.fail()
	case string, Bytes, *List, *Tuple, *Range:
		if s, ok := key.(*slice); ok {
			return r.slice(obj, s)
		}
		if _, ok := integer(key); !ok {
			return nil, typeError("%s indices must be integers, not '%s'", typeName(obj), typeName(key))
		}
		i, err := clampInt(key)
		if err != nil {
			return nil, err
		}
		n, err := length(r, obj)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, raise("IndexError", "%s index out of range", typeName(obj))
		}
		switch o := o.(type) {
		case string:
			return substring(o, int(i), int(i)+1), nil
		case Bytes:
			return int64(o[i]), nil
		case *List:
			return o.Items[i], nil
		case *Tuple:
			return o.Items[i], nil
		case *Range:
			return o.at(i), nil
		}
	}
	return nil, typeError("'%s' object is not subscriptable", typeName(obj))
}

// bounds resolves a slice for n items as Python does. It returns the first index, the step and the number of items.
func (s *slice) bounds(n int64) (start, step, count int64, err error) {
	part := func(v Value, def int64) int64 {
		if v == nil || err != nil {
			return def
		}
		var i int64
		if i, err = clampInt(v); err != nil {
			err = typeError("slice indices must be integers or None or have an __index__ method")
		}
		return i
	}
	step = part(s.step, 1)
	if err == nil && step == 0 {
		err = valueError("slice step cannot be zero")
	}
	step = max(step, -math.MaxInt64)
	lower, upper := int64(0), n
	first, last := int64(0), n
	if step < 0 {
		lower, upper = -1, n-1
		first, last = n-1, -1
	}
	clip := func(v Value, def int64) int64 {
		if v == nil {
			return def
		}
		i := part(v, def)
		if i < 0 {
			if i += n; i < lower {
				i = lower
			}
		}
		return min(i, upper)
	}
	start = clip(s.start, first)
	stop := clip(s.stop, last)
	switch {
	case err != nil:
	case step > 0 && start < stop:
		count = (stop-start-1)/step + 1
	case step < 0 && stop < start:
		count = (start-stop-1)/-step + 1
	}
	return start, step, count, err
}

// slice returns obj[start:stop:step].
func (r *run) slice(obj Value, s *slice) (Value, error) {
	switch o := obj.(type) {
	case *undefined:
		return nil, o.fail()
	case *Dict:
		return nil, typeError("unhashable type: 'slice'")
	case string, Bytes, *List, *Tuple, *Range:
	default:
		return nil, typeError("'%s' object is not subscriptable", typeName(obj))
	}
	n, err := length(r, obj)
	if err != nil {
		return nil, err
	}
	start, step, count, err := s.bounds(n)
	if err != nil {
		return nil, err
	}
	switch o := obj.(type) {
	case string:
		t, err := r.sliceText(o, start, step, count)
		return t, err
	case Bytes:
		b := make([]byte, 0, count)
		for i := range count {
			b = append(b, o[start+i*step])
		}
		return Bytes(b), r.alloc(len(b))
	case *List:
		items, err := r.sliceItems(o.Items, start, step, count)
		return &List{items}, err
	case *Tuple:
		items, err := r.sliceItems(o.Items, start, step, count)
		return &Tuple{Items: items}, err
	}
	o := obj.(*Range)
	c := &Range{start: o.start + start*o.step, step: o.step * step, n: count}
	c.stop = c.start + c.step*count
	return c, nil
}

func (r *run) sliceText(s string, start, step, count int64) (string, error) {
	if count == 0 {
		return "", nil
	}
	if step == 1 {
		r.work(len(s) / 64)
		return substring(s, int(start), int(start+count)), nil
	}
	if err := r.alloc(4 * len(s)); err != nil {
		return "", err
	}
	runes := []rune(s)
	out := make([]rune, 0, count)
	for i := range count {
		out = append(out, runes[start+i*step])
	}
	return string(out), nil
}

func (r *run) sliceItems(items []Value, start, step, count int64) ([]Value, error) {
	if err := r.alloc(int(count) * valueSize); err != nil {
		return nil, err
	}
	out := make([]Value, 0, count)
	for i := range count {
		out = append(out, items[start+i*step])
	}
	return out, nil
}

func (m *macro) attr(name string) (Value, bool, error) {
	d := m.def
	switch name {
	case "name":
		if d.name == "" {
			return nil, true, nil
		}
		return d.name, true, nil
	case "arguments":
		t := tuple()
		for _, a := range d.args {
			t.Items = append(t.Items, a.name)
		}
		return t, true, nil
	case "catch_kwargs":
		return d.takes.kwargs, true, nil
	case "catch_varargs":
		return d.takes.varargs, true, nil
	case "caller":
		return d.takes.caller, true, nil
	case "explicit_caller":
		return d.takes.explicitCaller, true, nil
	}
	return nil, false, nil
}
