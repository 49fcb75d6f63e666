package jinja

import (
	"unicode/utf8"
)

// iterator is a Python iterator: it yields each item once. Filters such as map and select return lazy iterators.
type iterator struct {
	typ  string // type name: generator, list_reverseiterator...
	name string // of the generator's function
	next func() (Value, bool, error)
	busy bool
	run  *run // set if next calls other iterators: counts against the depth limit
}

func generator(r *run, name string, next func() (Value, bool, error)) *iterator {
	return &iterator{run: r, typ: "generator", name: name, next: next}
}

// objectIter returns an iterator whose next calls other code: it counts against the depth limit.
func objectIter(r *run, typ string, next func() (Value, bool, error)) *iterator {
	return &iterator{run: r, typ: typ, next: next}
}

func (it *iterator) step() (Value, bool, error) {
	if it.next == nil {
		return nil, false, nil
	}
	if it.busy {
		return nil, false, valueError("generator already executing")
	}
	if it.run != nil {
		if err := it.run.enterCall(); err != nil {
			return nil, false, err
		}
		defer it.run.leaveCall()
	}
	it.busy = true
	v, ok, err := it.next()
	it.busy = false
	if !ok || err != nil {
		it.next = nil
		return nil, false, err
	}
	return v, true, nil
}

func sliceIter(items []Value) *iterator {
	i := 0
	return &iterator{typ: "list_iterator", next: func() (Value, bool, error) {
		if i == len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}}
}

func countIter(n int, at func(int) Value) *iterator {
	i := 0
	return &iterator{typ: "iterator", next: func() (Value, bool, error) {
		if i == n {
			return nil, false, nil
		}
		i++
		return at(i - 1), true, nil
	}}
}

// iterate returns Python's iter(v).
func iterate(v Value) (*iterator, error) {
	switch v := v.(type) {
	case *List:
		return sliceIter(v.Items), nil
	case *Tuple:
		return sliceIter(v.Items), nil
	case string:
		return runeIter(v, func(s string) Value { return s }), nil
	case Bytes:
		return countIter(len(v), func(i int) Value { return int64(v[i]) }), nil
	case *Dict:
		return sliceIter(v.keys), nil
	case *dictView:
		return countIter(v.d.Len(), v.at), nil
	case *Range:
		return countIter(int(v.n), func(i int) Value { return v.at(int64(i)) }), nil
	case *undefined:
		return sliceIter(nil), nil
	case *iterator:
		return v, nil
	case iterableObject:
		return v.iterate(), nil
	}
	return nil, typeError("'%s' object is not iterable", typeName(v))
}

func runeIter(s string, wrap func(string) Value) *iterator {
	return &iterator{typ: "str_iterator", next: func() (Value, bool, error) {
		if s == "" {
			return nil, false, nil
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return wrap(c), true, nil
	}}
}

// collect returns Python's list(v) as a slice, which the caller must not modify.
func (r *run) collect(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		return v.Items, nil
	case *Tuple:
		return v.Items, nil
	case *Dict:
		return v.keys, nil
	}
	it, err := iterate(v)
	if err != nil {
		return nil, err
	}
	var items []Value
	for {
		x, ok, err := it.step()
		if err != nil {
			return nil, err
		}
		if !ok {
			return items, nil
		}
		if err := r.tick(); err != nil {
			return nil, err
		}
		if err := r.alloc(valueSize); err != nil {
			return nil, err
		}
		items = append(items, x)
	}
}

func iterable(v Value) error {
	_, err := iterate(v)
	return err
}
