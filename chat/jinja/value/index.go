package value

import (
	"math"
)

// Index returns Python's obj[key].
func (r *Run) Index(obj, key Value) (Value, error) {
	switch o := obj.(type) {
	case *Dict:
		v, ok, err := r.lookup(o, key)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, Raise("KeyError", "no such key")
		}
		return v, nil
	case *Undefined:
		return nil, o.Fail()
	case string, *List, *Tuple, *Range:
		if s, ok := key.(*Slice); ok {
			return r.Slice(obj, s)
		}
		if _, ok := Integer(key); !ok {
			return nil, TypeError("%s indices must be integers, not '%s'", TypeName(obj), TypeName(key))
		}
		i, err := ClampInt(key)
		if err != nil {
			return nil, err
		}
		n, err := r.Length(obj)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, Raise("IndexError", "%s index out of range", TypeName(obj))
		}
		switch o := o.(type) {
		case string:
			r.Read(o)
			return Substring(o, int(i), int(i)+1), nil
		case *List:
			return o.Items[i], nil
		case *Tuple:
			return o.Items[i], nil
		case *Range:
			return o.at(i), nil
		}
	}
	return nil, TypeError("'%s' object is not subscriptable", TypeName(obj))
}

// bounds resolves a slice for n items as Python does. It returns the first index, the step and the number of items.
func (s *Slice) bounds(n int64) (start, step, count int64, err error) {
	part := func(v Value, def int64) int64 {
		if v == nil || err != nil {
			return def
		}
		var i int64
		if i, err = ClampInt(v); err != nil {
			err = TypeError("slice indices must be integers or None or have an __index__ method")
		}
		return i
	}
	step = part(s.Step, 1)
	if err == nil && step == 0 {
		err = ValueError("slice step cannot be zero")
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
	start = clip(s.Start, first)
	stop := clip(s.Stop, last)
	switch {
	case err != nil:
	case step > 0 && start < stop:
		count = (stop-start-1)/step + 1
	case step < 0 && stop < start:
		count = (start-stop-1)/-step + 1
	}
	return start, step, count, err
}

// Slice returns obj[start:stop:step].
func (r *Run) Slice(obj Value, s *Slice) (Value, error) {
	switch o := obj.(type) {
	case *Undefined:
		return nil, o.Fail()
	case *Dict:
		return nil, TypeError("unhashable type: 'slice'")
	case string, *List, *Tuple, *Range:
	default:
		return nil, TypeError("'%s' object is not subscriptable", TypeName(obj))
	}
	n, err := r.Length(obj)
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
	case *List:
		items, err := r.sliceItems(o.Items, start, step, count)
		return &List{items}, err
	case *Tuple:
		items, err := r.sliceItems(o.Items, start, step, count)
		return &Tuple{Items: items}, err
	}
	o := obj.(*Range)
	c := &Range{Start: o.Start + start*o.Step, Step: o.Step * step, N: count}
	c.Stop = c.Start + c.Step*count
	return c, nil
}

func (r *Run) sliceText(s string, start, step, count int64) (string, error) {
	if count == 0 {
		return "", nil
	}
	if step == 1 {
		r.Read(s)
		return Substring(s, int(start), int(start+count)), nil
	}
	if err := r.Alloc(4 * len(s)); err != nil {
		return "", err
	}
	runes := []rune(s)
	out := make([]rune, 0, count)
	for i := range count {
		out = append(out, runes[start+i*step])
	}
	return string(out), nil
}

func (r *Run) sliceItems(items []Value, start, step, count int64) ([]Value, error) {
	if err := r.Alloc(int(count) * Overhead); err != nil {
		return nil, err
	}
	out := make([]Value, 0, count)
	for i := range count {
		out = append(out, items[start+i*step])
	}
	return out, nil
}
