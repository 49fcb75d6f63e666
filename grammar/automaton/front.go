package automaton

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/ingotml/ingot/grammar/trie"
)

var (
	noFront    = &front{} // all texts are dead
	mixedFront = &front{} // some are, or there are too many states
)

// maxFront bounds the states of a front, maxAdvance the steps for all fronts of one mask.
const (
	maxFront   = 256
	maxAdvance = 1 << 16
)

// front returns the front of one state.
func (a *Automaton) front(s *state) *front {
	if s.front == nil {
		s.front = a.frontOf(s)
	}
	return s.front
}

// frontOf returns the front of these states.
func (a *Automaton) frontOf(states ...*state) *front {
	slices.SortFunc(states, func(x, y *state) int { return cmp.Compare(x.id, y.id) })
	key := a.key[:0]
	for _, s := range states {
		key = binary.LittleEndian.AppendUint32(key, s.id)
	}
	a.key = key
	f, ok := a.fronts[string(key)]
	if !ok {
		f = &front{states: slices.Clone(states)}
		for _, s := range states {
			f.most = max(f.most, s.tokens)
			f.unknown, f.rounded = f.unknown || s.unknown, f.rounded || s.rounded
		}
		a.fronts[string(key)] = f
		a.bytes += 200 + 12*len(states)
	}
	return f
}

// advance returns the front after all bytes of a kind.
func (a *Automaton) advance(f *front, kind uint8) *front {
	if f.next == nil {
		f.next = make([]*front, len(trie.BytesOf))
		a.bytes += 8 * len(trie.BytesOf)
	}
	if f.next[kind] == nil {
		f.next[kind] = a.findAdvance(f, kind)
	}
	return f.next[kind]
}

func (a *Automaton) findAdvance(f *front, kind uint8) *front {
	if a.advances > maxAdvance {
		return mixedFront
	}
	a.mark++
	var room [maxFront]*state
	states, dead := room[:0], false
	for _, s := range f.states {
		last := -1
		for _, b := range trie.BytesOf[kind] {
			class := int(a.classOf[b])
			if class == last {
				continue
			}
			last = class
			a.advances++
			to := a.step(s, b)
			switch {
			case to == a.dead:
				dead = true
			case to.mark == a.mark:
				continue
			case len(states) == maxFront:
				return mixedFront
			default:
				to.mark = a.mark
				states = append(states, to)
			}
			if dead && len(states) > 0 {
				return mixedFront
			}
		}
	}
	if dead {
		return noFront
	}
	return a.frontOf(states...)
}

// undecided reports whether only less truncated states can decide what follows the given number of bytes of a token.
func (f *front) undecided(bytes int) bool {
	return f.unknown || f.rounded && bytes >= countHorizon
}

// returns reports whether the bytes of all these kinds lead to f again.
func (a *Automaton) returns(f *front, kinds uint64) bool {
	for unknown := kinds &^ f.looping; unknown != 0; unknown &= unknown - 1 {
		kind := bits.TrailingZeros64(unknown)
		if f.notLooping>>kind&1 != 0 {
			return false
		}
		if a.advance(f, uint8(kind)) != f {
			f.notLooping |= 1 << kind
			return false
		}
		f.looping |= 1 << kind
	}
	return true
}
