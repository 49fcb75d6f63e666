package automaton

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// walkKinds is walk for all tokens of a trie.
func (a *Automaton) walkKinds(m *mask, k *trie.Kinds, s *state) {
	var path [vocabulary.LongestToken + 1]*front
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

// walkMembers walks the tokens at and below a node by their bytes.
func (a *Automaton) walkMembers(m *mask, k *trie.Kinds, i int32, d *descent) {
	t := k.Of
	before := int(k.Nodes[i].Depth) - 1
	for _, at := range k.Members(i) {
		d.descend(a, t.PathTo(at)[:before])
		a.walk(m, t, at, t.Nodes[at].Skip, &d.states)
	}
}

// maxFew bounds the nodes below the bytes that walkFew begins with.
const maxFew = 1 << 13

// walkFew walks the tokens that begin with one of a few bytes, and reports whether these are few, too: many words begin
// with a space.
func (a *Automaton) walkFew(m *mask, s *state, first expr.ByteSet) bool {
	var path [vocabulary.LongestToken + 1]*state
	path[0] = s
	t := &a.v.All
	size := int32(0)
	for b := range first.All() {
		if at := t.Roots[b]; at >= 0 {
			size += t.Nodes[at].Skip - at
		}
	}
	if size > maxFew {
		return false
	}
	for b := range first.All() {
		if at := t.Roots[b]; at >= 0 {
			a.walk(m, t, at, t.Nodes[at].Skip, &path)
		}
	}
	return true
}

// walkAll walks all tokens of a trie.
func (a *Automaton) walkAll(m *mask, t *trie.Trie, s *state) {
	if t.Kinds != nil {
		a.walkKinds(m, t.Kinds, s)
		return
	}
	var path [vocabulary.LongestToken + 1]*state
	path[0] = s
	a.walk(m, t, 0, int32(len(t.Nodes)), &path)
}

// walk adds the allowed tokens of t.Nodes[from:to] to m. path has the states after the bytes before these nodes.
func (a *Automaton) walk(m *mask, t *trie.Trie, from, to int32, path *[vocabulary.LongestToken + 1]*state) {
	nodes := t.Nodes
	for i := from; i < to && a.work <= maxWork; {
		n := &nodes[i]
		next := a.step(path[n.Depth-1], n.Key)
		if next == a.dead {
			i = n.Skip
			continue
		}
		if n.Token != trie.None && next.tokens < infinite {
			t.Set(m.bits, n)
			m.any, m.most = true, max(m.most, next.tokens)
		}
		switch {
		case n.Skip == i+1:
			i++
			continue
		case next.simple && (n.Skip-i <= manyNodes || !a.returns(a.front(next), t.Below[i])), !next.simple &&
			!next.undecided(int(n.Depth)):
			path[n.Depth] = next
			i++
			continue
		case next.simple: // every continuation is allowed
			t.SetAll(m.bits, i+1, n.Skip)
			m.any, m.most = true, max(m.most, next.tokens)
		case n.Skip > i+1:
			m.subtrees = append(m.subtrees, subtree{trie: t, node: i, path: t.PathTo(i)})
		}
		i = n.Skip
	}
}

// manyNodes is the size of a subtree from which on it is worth asking whether all of it is allowed.
const manyNodes = 32
