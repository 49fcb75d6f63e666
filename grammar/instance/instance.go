// Package instance searches for a text of a JSON value that an automaton accepts.
//
// Contract: the texts of a value have its properties in any order that the automaton has, and its numbers and strings
// in any spelling. The search is bounded.
package instance

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/internal/limits"
)

// Automaton reads texts by bytes.
type Automaton[S comparable] interface {
	// After returns the state after a text, or false if it allows no such text. If an item of an array ends in the text,
	// repeats reports whether it equals one before it.
	After(s S, text string, repeats bool) (S, bool)
	// Compares reports whether items are compared.
	Compares() bool
}

// Options describe the texts.
type Options struct {
	Orders  [][]string // of the properties of objects
	Spelled bool       // a decimal is not spelled as an integer
	Steps   int        // until the search gives up
}

// Ends returns the states after the texts of v from a state on, and whether the search ended before its bound.
func Ends[S comparable](a Automaton[S], start S, v any, o Options) (ends []S, ok bool) {
	r := &reader[S]{a: a, orders: o.Orders, spelled: o.Spelled, left: o.Steps}
	ends = r.value([]S{start}, v, false)
	return ends, r.left >= 0
}

// reader follows the texts of one instance through an automaton.
type reader[S comparable] struct {
	a       Automaton[S]
	orders  [][]string
	spelled bool // a decimal is not spelled as an integer
	left    int  // steps until the search gives up
}

// text returns the states after b from any of the states in from.
func (r *reader[S]) text(from []S, b string) []S { return r.ending(from, b, false) }

// ending is text if an item may end in b; repeats: it repeats one before it.
func (r *reader[S]) ending(from []S, b string, repeats bool) []S {
	var out []S
	for _, s := range from {
		r.left -= len(b)
		if r.left < 0 {
			return nil
		}
		if to, ok := r.a.After(s, b, repeats); ok && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

func join[S comparable](a, b []S) []S {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// value returns the states after all texts of v; repeats: it is an item that repeats one before it.
func (r *reader[S]) value(from []S, v any, repeats bool) (out []S) {
	if len(from) == 0 {
		return nil
	}
	switch v := v.(type) {
	case nil:
		return r.ending(from, "null", repeats)
	case bool:
		return r.ending(from, strconv.FormatBool(v), repeats)
	case json.Number:
		for _, spelling := range spellings(v.String(), r.spelled) {
			out = join(out, r.ending(from, spelling, repeats))
		}
		return out
	case string:
		return r.string(from, v, repeats)
	case []any:
		at := r.text(from, "[")
		again := r.repeated(v)
		for i, item := range v {
			if i > 0 {
				at = r.text(at, ", ")
			}
			at = r.value(at, item, again != nil && again[i])
		}
		return r.ending(at, "]", repeats)
	case []member:
		for _, s := range r.text(from, "{") {
			out = join(out, r.object(s, v, repeats))
		}
	}
	return out
}

// string follows all spellings of a string, character by character.
func (r *reader[S]) string(from []S, s string, repeats bool) []S {
	at := r.text(from, `"`)
	for _, c := range s {
		var next []S
		for _, spelling := range jsontext.Spellings(c) {
			next = join(next, r.text(at, spelling))
		}
		if at = next; len(at) == 0 {
			return nil
		}
	}
	return r.ending(at, `"`, repeats)
}

// objectReader searches for the orders of an object's members that the automaton accepts.
type objectReader[S comparable] struct {
	*reader[S]
	members []member
	made    map[memberAt[S]][]S
	seen    map[objectState[S]]bool
	visits  int // until the search through all orders gives up
	repeats bool
}

type memberAt[S comparable] struct {
	from S
	i    int
}

type objectState[S comparable] struct {
	at   S
	used string
}

// Bounds of the search for an order: the schema's lists that are tried, and the steps through other orders.
const (
	maxOrders = 12
	maxVisits = 500
)

// object returns the states after the members and the end of an object.
func (r *reader[S]) object(s S, members []member, repeats bool) []S {
	o := &objectReader[S]{reader: r, members: members, made: map[memberAt[S]][]S{}, seen: map[objectState[S]]bool{},
		visits: maxVisits, repeats: repeats}
	for _, order := range o.likely() {
		at := []S{s}
		for n, i := range order {
			if n > 0 {
				at = r.text(at, ", ")
			}
			var next []S
			for _, from := range at {
				next = join(next, o.member(from, i))
			}
			at = next
		}
		if ends := r.ending(at, "}", repeats); len(ends) > 0 {
			return ends
		}
	}
	return o.search(s, make([]bool, len(members)), len(members))
}

// likely returns the orders of the members in the schema's lists that have most of them: listed members first, then the
// others.
func (o *objectReader[S]) likely() (orders [][]int) {
	given := make([]int, len(o.members))
	for i := range given {
		given[i] = i
	}
	orders = append(orders, given)
	index := map[string]int{}
	for i, m := range o.members {
		index[m.name] = i
	}
	type scored struct {
		order []int
		has   int
	}
	var all []scored
	for _, names := range o.orders {
		var order []int
		listed := make([]bool, len(o.members))
		for _, name := range names {
			if i, ok := index[name]; ok {
				order = append(order, i)
				listed[i] = true
			}
		}
		if len(order) < 1 {
			continue
		}
		has := len(order)
		for i := range o.members {
			if !listed[i] {
				order = append(order, i)
			}
		}
		if !slices.ContainsFunc(all, func(s scored) bool { return slices.Equal(s.order, order) }) {
			all = append(all, scored{order, has})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.has - a.has })
	for _, s := range all[:min(len(all), maxOrders)] {
		orders = append(orders, s.order)
	}
	return orders
}

// member returns the states after one member.
func (o *objectReader[S]) member(from S, i int) []S {
	k := memberAt[S]{from, i}
	to, ok := o.made[k]
	if !ok {
		m := o.members[i]
		if to = o.text(o.string([]S{from}, m.name, false), ": "); len(to) > 0 {
			to = o.value(to, m.value, false)
		}
		o.made[k] = to
	}
	return to
}

// search reads the unused members in every order that is possible from s, until one is found.
func (o *objectReader[S]) search(s S, used []bool, left int) []S {
	if left == 0 {
		return o.ending([]S{s}, "}", o.repeats)
	}
	var key strings.Builder
	for _, u := range used {
		key.WriteByte(map[bool]byte{true: '1', false: '0'}[u])
	}
	k := objectState[S]{s, key.String()}
	if o.visits--; o.seen[k] || o.left < 0 || o.visits < 0 {
		return nil
	}
	o.seen[k] = true
	at := []S{s}
	if left < len(o.members) {
		at = o.text(at, ", ")
	}
	for i := range o.members {
		if used[i] {
			continue
		}
		used[i] = true
		for _, from := range at {
			for _, next := range o.member(from, i) {
				if ends := o.search(next, used, left-1); len(ends) > 0 {
					used[i] = false
					return ends
				}
			}
		}
		used[i] = false
	}
	return nil
}

// repeated returns which items of an array repeat one before it; nil if no array of the grammar asks.
func (r *reader[S]) repeated(array []any) []bool {
	if !r.a.Compares() || len(array) < 2 {
		return nil
	}
	again := make([]bool, len(array))
	seen := map[string]bool{}
	for i, item := range array {
		key := itemOf(item).Key
		again[i] = seen[key] || i >= limits.GrammarUniqueItems
		seen[key] = true
	}
	return again
}

// itemOf returns an instance's value.
func itemOf(v any) *items.Value {
	var parts []*items.Value
	switch v := v.(type) {
	case bool:
		return items.Literal(strconv.FormatBool(v))
	case json.Number:
		return items.Number(v.String())
	case string:
		return items.String(v)
	case []any:
		for _, item := range v {
			parts = append(parts, itemOf(item))
		}
		return items.Array(parts)
	case []member:
		names := make([]string, len(v))
		for i, m := range v {
			names[i], parts = m.name, append(parts, itemOf(m.value))
		}
		return items.Object(names, parts)
	}
	return items.Literal("null")
}
