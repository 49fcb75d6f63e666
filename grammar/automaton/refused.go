package automaton

import (
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// descent is the way to a node of a trie from its root: the next one often begins with the same bytes.
type descent struct {
	path   []byte
	states [vocabulary.LongestToken + 1]*state // after these bytes
}

// descend fills the states after the bytes of path.
func (d *descent) descend(a *Automaton, path []byte) {
	same := 0
	for same < len(d.path) && same < len(path) && path[same] == d.path[same] {
		same++
	}
	for ; same < len(path); same++ {
		d.states[same+1] = a.step(d.states[same], path[same])
	}
	d.path = path
}

// A text that must not match a pattern, or match one of several, refuses few words, and only where they are spelled
// out. So where most bytes of a kind are allowed after a front, a mask goes on with the front of these, and takes the
// refused tokens away afterwards. To find them, it asks which bytes can precede a refused one.

// manyMembers is the number of nodes from which on that is worth it.
const manyMembers = 64

// survivors returns the front after those bytes of a kind that are allowed after f, or mixedFront if too many are not
// or the front is too large.
func (a *Automaton) survivors(f *front, kind uint8, members int) *front {
	if members < manyMembers || len(f.states) == 0 {
		return mixedFront
	}
	if f.survivors == nil {
		f.survivors = make([]*front, len(trie.BytesOf))
		a.bytes += 8 * len(trie.BytesOf)
	}
	if f.survivors[kind] == nil {
		f.survivors[kind] = a.findSurvivors(f, kind)
	}
	return f.survivors[kind]
}

func (a *Automaton) findSurvivors(f *front, kind uint8) *front {
	all, dead := 0, 0
	for _, s := range f.states {
		following := a.following(s)
		for _, b := range trie.BytesOf[kind] {
			if all++; !following.Has(b) {
				dead++
			}
		}
	}
	if 2*dead > all {
		return mixedFront
	}
	a.mark++
	var states []*state
	for _, s := range f.states {
		for _, b := range trie.BytesOf[kind] {
			to := a.step(s, b)
			if to == a.dead || to.mark == a.mark {
				continue
			}
			if len(states) == maxFront || !to.simple {
				return mixedFront
			}
			to.mark = a.mark
			states = append(states, to)
		}
	}
	return a.frontOf(states...)
}

func (a *Automaton) ending(f *front, kind uint8, to *ending) *ending {
	key := endingKey{kind, to}
	if e := f.endings[key]; e != nil {
		return e
	}
	a.mark++
	if to == nil {
		a.dead.mark = a.mark
	} else {
		for _, s := range to.states {
			s.mark = a.mark
		}
	}
	e := &ending{}
	for _, s := range f.states {
		leads := false
		for _, b := range trie.BytesOf[kind] {
			if a.step(s, b).mark == a.mark {
				e.bytes[b] = 1
				leads = true
			}
		}
		if leads {
			e.states = append(e.states, s)
		}
	}
	if f.endings == nil {
		f.endings = map[endingKey]*ending{}
	}
	f.endings[key] = e
	a.bytes += 320 + 8*len(e.states)
	return e
}

// findRefused appends the nodes of the trie that are refused among those at a node.
func (a *Automaton) findRefused(refused []int32, k *trie.Kinds, i int32, path *[vocabulary.LongestToken + 1]*front,
	d *descent) []int32 {
	depth := int(k.Nodes[i].Depth)
	members := k.Members(i)
	kinds := k.Of.PathTo(members[0])
	var leads [4][256]uint8 // by how many bytes follow it: whether a byte may lead to a refusal
	var e *ending
	for n := range leads {
		if at := depth - 1 - n; at >= 0 {
			e = a.ending(path[at], trie.KindOf[kinds[at]], e)
			leads[n] = e.bytes
		} else {
			leads[n][0] = 1
		}
	}
	for j, last := range k.Lasts(i) {
		if leads[0][byte(last)]&leads[1][byte(last>>8)]&leads[2][byte(last>>16)]&leads[3][byte(last>>24)] == 0 {
			continue
		}
		if d.descend(a, k.Of.PathTo(members[j])); d.states[depth] == a.dead {
			refused = append(refused, members[j])
		}
	}
	return refused
}
