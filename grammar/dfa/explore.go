package dfa

import "github.com/ingotml/ingot/grammar/expr"

// Explore returns the automaton whose states are the values that step reaches from start; step reports whether a class
// is allowed.
func Explore[S comparable](classes []expr.RuneSet, start S, step func(s S, class int) (S, bool),
	accept func(s S) bool) (*DFA, error) {
	out := &DFA{classes: classes}
	ids := map[S]int32{start: 0}
	order := []S{start}
	for i := 0; i < len(order); i++ {
		if len(order) > maxStates {
			return nil, errLimit()
		}
		out.accept = append(out.accept, accept(order[i]))
		for c := range classes {
			to, ok := step(order[i], c)
			if !ok {
				out.next = append(out.next, dead)
				continue
			}
			id, known := ids[to]
			if !known {
				id = int32(len(order))
				ids[to] = id
				order = append(order, to)
			}
			out.next = append(out.next, id)
		}
	}
	return out.trim().Minimize(), nil
}

// Machine is the texts of an automaton.
func Machine(d *DFA) Node { return Node{op: opMachine, machine: d} }

// Lengths returns the fewest and the most characters of the texts of d, which is not empty; most < 0: unbounded.
func (d *DFA) Lengths() (least, most int) {
	n := len(d.accept)
	at := make([]bool, n)
	at[0] = true
	least = -1
	for length := 0; length <= n; length++ {
		next := make([]bool, n)
		any := false
		for s, here := range at {
			if !here {
				continue
			}
			if d.accept[s] {
				if least < 0 {
					least = length
				}
				most = length
			}
			for _, to := range d.row(int32(s)) {
				if to != dead {
					next[to], any = true, true
				}
			}
		}
		if !any {
			return least, most
		}
		at = next
	}
	return least, -1
}

// Run describes texts that repeat characters of one set: least to most times.
type Run struct {
	Set         expr.RuneSet
	Least, Most int // Most < 0: unbounded
}

// Run returns the run that d is, if it is one.
func (d *DFA) Run() (r Run, ok bool) {
	if d.Empty() {
		return r, false
	}
	class := -1
	at := int32(0)
	seen := make([]bool, len(d.accept))
	r.Least = -1
	for n := 0; ; n++ {
		seen[at] = true
		if d.accept[at] {
			if r.Least < 0 {
				r.Least = n
			}
		} else if r.Least >= 0 {
			return r, false
		}
		to := int32(dead)
		for c, t := range d.row(at) {
			if t == dead {
				continue
			}
			if to != dead || class >= 0 && c != class {
				return r, false
			}
			class, to = c, t
		}
		switch {
		case to == dead:
			r.Most = n
		case to == at:
			r.Most = -1
		case seen[to]:
			return r, false
		default:
			at = to
			continue
		}
		if class < 0 {
			return r, false
		}
		r.Set = d.classes[class]
		return r, r.Least >= 0
	}
}
