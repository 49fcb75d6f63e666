package grammar

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/ingotml/ingot/grammar/trie"
)

// front is the set of states that all texts of some kinds of bytes lead to. Where none of them is dead, the tokens of
// these kinds are allowed, although they lead to different states: as in a text that a pattern must match somewhere.
// Where some are dead, a mask walks the bytes.
type front struct {
	states  []*state // by id
	most    int64    // the most tokens that one of the states needs
	unknown bool     // of one of the states
	rounded bool
	next    []*front // by kind; nil: not computed yet

	looping, notLooping uint64 // kinds that lead to this front again, or do not

	survivors []*front // by kind, see refused.go; nil: not computed yet
	endings   map[endingKey]*ending
}

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
func (a *automaton) front(s *state) *front {
	if s.front == nil {
		s.front = a.frontOf(s)
	}
	return s.front
}

// frontOf returns the front of these states.
func (a *automaton) frontOf(states ...*state) *front {
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
func (a *automaton) advance(f *front, kind uint8) *front {
	if f.next == nil {
		f.next = make([]*front, len(trie.BytesOf))
		a.bytes += 8 * len(trie.BytesOf)
	}
	if f.next[kind] == nil {
		f.next[kind] = a.findAdvance(f, kind)
	}
	return f.next[kind]
}

func (a *automaton) findAdvance(f *front, kind uint8) *front {
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
func (a *automaton) returns(f *front, kinds uint64) bool {
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

// walkKinds is walk for all tokens of a trie.
func (a *automaton) walkKinds(m *mask, k *trie.Kinds, s *state) {
	var path [longestToken + 1]*front
	path[0] = a.front(s)
	var d descent
	d.states[0] = s
	var refused []int32
	for i := int32(0); int(i) < len(k.Nodes)-1 && a.work <= maxWork; {
		n := &k.Nodes[i]
		depth := int(n.Depth)
		to := a.advance(path[depth-1], n.Kind)
		if to == mixedFront {
			if live := a.survivors(path[depth-1], n.Kind, len(k.Members(i))); live != mixedFront {
				refused = a.findRefused(refused, k, i, &path, &d)
				takeOwn(m, k, i, live)
				path[depth] = live
				i++
				continue
			}
		}
		switch undecided := to.undecided(depth); {
		case to == noFront:
			i = n.Skip
			continue
		case to == mixedFront, to.most >= infinite, undecided && len(to.states) > 1:
			a.walkMembers(m, k, i, &d)
			i = n.Skip
			continue
		case undecided:
			takeOwn(m, k, i, to)
			t := k.Of
			for _, at := range k.Members(i) {
				if t.Nodes[at].Skip > at+1 {
					m.subtrees = append(m.subtrees, subtree{trie: t, node: at, path: t.PathTo(at)})
				}
			}
			i = n.Skip
			continue
		case n.Below != 0 && !to.rounded && a.returns(to, n.Below):
			k.SetAll(m.bits, i)
			m.any, m.most = true, max(m.most, to.most)
			i = n.Skip
			continue
		}
		takeOwn(m, k, i, to)
		path[depth] = to
		i++
	}
	if len(refused) > 0 {
		for _, at := range refused {
			k.Of.ClearAll(m.bits, at, k.Of.Nodes[at].Skip)
		}
		m.any = slices.ContainsFunc(m.bits, func(w uint32) bool { return w != 0 })
	}
}

// takeOwn adds the tokens that end at a node and lead to a front.
func takeOwn(m *mask, k *trie.Kinds, i int32, to *front) {
	if k.Ends(i) {
		k.Set(m.bits, i)
		m.any, m.most = true, max(m.most, to.most)
	}
}

// descent is the way to a node of a trie from its root: the next one often begins with the same bytes.
type descent struct {
	path   []byte
	states [longestToken + 1]*state // after these bytes
}

// descend fills the states after the bytes of path.
func (d *descent) descend(a *automaton, path []byte) {
	same := 0
	for same < len(d.path) && same < len(path) && path[same] == d.path[same] {
		same++
	}
	for ; same < len(path); same++ {
		d.states[same+1] = a.step(d.states[same], path[same])
	}
	d.path = path
}

// walkMembers walks the tokens at and below a node by their bytes.
func (a *automaton) walkMembers(m *mask, k *trie.Kinds, i int32, d *descent) {
	t := k.Of
	before := int(k.Nodes[i].Depth) - 1
	for _, at := range k.Members(i) {
		d.descend(a, t.PathTo(at)[:before])
		a.walk(m, t, at, t.Nodes[at].Skip, &d.states)
	}
}
