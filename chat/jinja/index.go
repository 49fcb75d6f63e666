package jinja

import "math"

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
		n, err := r.length(obj)
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
	n, err := r.length(obj)
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
