// Package dfa has deterministic automata over characters: regular languages that can be intersected, complemented and
// compared, which expressions cannot.
//
// Contract: a DFA is immutable. Every operation bounds the number of states and returns ErrLimit beyond it. The
// characters are the Unicode scalar values.
package dfa

import (
	"github.com/ingotml/ingot/grammar/expr"
)

// maxStates bounds the states of an automaton.
const maxStates = 1 << 14

// dead is the state from which nothing is accepted.
const dead = -1

// DFA is a deterministic automaton. State 0 is the start. The classes partition all characters; a DFA without states
// accepts nothing.
type DFA struct {
	classes []expr.RuneSet
	next    []int32 // by state and class; dead: rejected
	accept  []bool  // by state
	short   int     // d may lack texts of more characters; 0: it lacks none
}

// States returns the number of states.
func (d *DFA) States() int { return len(d.accept) }

// Empty reports whether d accepts nothing.
func (d *DFA) Empty() bool { return len(d.accept) == 0 }

func (d *DFA) row(s int32) []int32 {
	k := len(d.classes)
	return d.next[int(s)*k : (int(s)+1)*k]
}

// Match reports whether d accepts text.
func (d *DFA) Match(text string) bool {
	if d.Empty() {
		return false
	}
	at := int32(0)
	for _, r := range text {
		to := int32(dead)
		for c, set := range d.classes {
			if set.Has(r) {
				to = d.row(at)[c]
				break
			}
		}
		if at = to; at == dead {
			return false
		}
	}
	return d.accept[at]
}

func errLimit() error {
	return expr.Errorf(expr.ErrLimit, "the patterns need more than %d states", maxStates)
}

// trim removes the states that cannot reach an accepting one, and those that nothing reaches.
func (d *DFA) trim() *DFA {
	n, k := len(d.accept), len(d.classes)
	// The predecessors of state s are from[begin[s]:begin[s+1]].
	begin := make([]int32, n+2)
	for _, to := range d.next {
		if to != dead {
			begin[to+2]++
		}
	}
	for s := range n {
		begin[s+2] += begin[s+1]
	}
	from := make([]int32, begin[n+1])
	for s := range n {
		for _, to := range d.row(int32(s)) {
			if to != dead {
				from[begin[to+1]] = int32(s)
				begin[to+1]++
			}
		}
	}
	live := make([]bool, n)
	var stack []int32
	for s, ok := range d.accept {
		if ok {
			live[s] = true
			stack = append(stack, int32(s))
		}
	}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, f := range from[begin[s]:begin[s+1]] {
			if !live[f] {
				live[f] = true
				stack = append(stack, f)
			}
		}
	}
	out := &DFA{classes: d.classes, short: d.short}
	if n == 0 || !live[0] {
		return out
	}
	ids := make([]int32, n)
	for s := range ids {
		ids[s] = dead
	}
	ids[0] = 0
	order := []int32{0}
	for i := 0; i < len(order); i++ {
		for _, to := range d.row(order[i]) {
			if to != dead && live[to] && ids[to] == dead {
				ids[to] = int32(len(order))
				order = append(order, to)
			}
		}
	}
	out.accept = make([]bool, len(order))
	out.next = make([]int32, len(order)*k)
	for i, s := range order {
		out.accept[i] = d.accept[s]
		for c, to := range d.row(s) {
			out.next[i*k+c] = dead
			if to != dead && live[to] {
				out.next[i*k+c] = ids[to]
			}
		}
	}
	return out
}

// Any accepts every text.
func Any() *DFA {
	return &DFA{classes: []expr.RuneSet{expr.EveryRune}, next: []int32{0}, accept: []bool{true}}
}
