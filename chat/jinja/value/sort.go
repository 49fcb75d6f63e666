package value

import (
	"slices"
)

// Key returns the part of an item that a filter's attribute argument selects: "a.b.0", a number, or None for the
// item.
type Key func(r *Run, v Value) (Value, error)

// SortBy sorts items by keys. The sort is stable, also if reversed.
func (r *Run) SortBy(items []Value, key Key, reversed bool) ([]Value, error) {
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	if err := r.Alloc(3 * len(items) * Overhead); err != nil {
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
		if failed = r.Tick(); failed != nil {
			return 0
		}
		less, err := r.Ordered("<", a.key, b.key, 0)
		if err == nil && less {
			return -1
		}
		if err == nil {
			if less, err = r.Ordered("<", b.key, a.key, 0); err == nil && less {
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
