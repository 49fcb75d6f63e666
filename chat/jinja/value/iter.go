package value

import (
	"unicode/utf8"
)

// Iterator is a Python iterator: it yields each item once. Filters such as map and select return lazy iterators.
type Iterator struct {
	Type string // type name: generator, list_reverseiterator...
	name string // of the generator's function
	Next func() (Value, bool, error)
	busy bool
	Run  *Run // set if next calls other iterators: counts against the depth limit
}

// Generator returns the iterator of a generator function, whose steps count against the depth limit.
func Generator(r *Run, name string, next func() (Value, bool, error)) *Iterator {
	return &Iterator{Run: r, Type: "generator", name: name, Next: next}
}

// ObjectIter returns an iterator whose next calls other code: it counts against the depth limit.
func ObjectIter(r *Run, typ string, next func() (Value, bool, error)) *Iterator {
	return &Iterator{Run: r, Type: typ, Next: next}
}

// Step returns the next item. The bool is false at the end.
func (it *Iterator) Step() (Value, bool, error) {
	if it.Next == nil {
		return nil, false, nil
	}
	if it.busy {
		return nil, false, ValueError("generator already executing")
	}
	if it.Run != nil {
		if err := it.Run.EnterCall(); err != nil {
			return nil, false, err
		}
		defer it.Run.LeaveCall()
	}
	it.busy = true
	v, ok, err := it.Next()
	it.busy = false
	if !ok || err != nil {
		it.Next = nil
		return nil, false, err
	}
	return v, true, nil
}

// SliceIter returns an iterator over items.
func SliceIter(items []Value) *Iterator {
	i := 0
	return &Iterator{Type: "list_iterator", Next: func() (Value, bool, error) {
		if i == len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}}
}

func countIter(n int, at func(int) Value) *Iterator {
	i := 0
	return &Iterator{Type: "iterator", Next: func() (Value, bool, error) {
		if i == n {
			return nil, false, nil
		}
		i++
		return at(i - 1), true, nil
	}}
}

// Iterate returns Python's iter(v).
func Iterate(v Value) (*Iterator, error) {
	switch v := v.(type) {
	case *List:
		return SliceIter(v.Items), nil
	case *Tuple:
		return SliceIter(v.Items), nil
	case string:
		return runeIter(v, func(s string) Value { return s }), nil
	case *Dict:
		return SliceIter(v.keys), nil
	case *DictView:
		return countIter(v.Dict.Len(), v.at), nil
	case *Range:
		return countIter(int(v.N), func(i int) Value { return v.at(int64(i)) }), nil
	case *Undefined:
		return SliceIter(nil), nil
	case *Iterator:
		return v, nil
	case Iterable:
		return v.Iterate(), nil
	}
	return nil, TypeError("'%s' object is not iterable", TypeName(v))
}

func runeIter(s string, wrap func(string) Value) *Iterator {
	return &Iterator{Type: "str_iterator", Next: func() (Value, bool, error) {
		if s == "" {
			return nil, false, nil
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return wrap(c), true, nil
	}}
}

// Collect returns Python's list(v) as a slice, which the caller must not modify.
func (r *Run) Collect(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		return v.Items, nil
	case *Tuple:
		return v.Items, nil
	case *Dict:
		return v.keys, nil
	}
	it, err := Iterate(v)
	if err != nil {
		return nil, err
	}
	var items []Value
	for {
		x, ok, err := it.Step()
		if err != nil {
			return nil, err
		}
		if !ok {
			return items, nil
		}
		if err := r.Tick(); err != nil {
			return nil, err
		}
		if err := r.Alloc(Overhead); err != nil {
			return nil, err
		}
		items = append(items, x)
	}
}

// CheckIterable returns Python's TypeError if v cannot be iterated.
func CheckIterable(v Value) error {
	_, err := Iterate(v)
	return err
}
