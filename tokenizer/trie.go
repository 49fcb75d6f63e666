package tokenizer

import (
	"cmp"
	"slices"
)

// trie finds which of many strings a text starts with. It is a double array: the child of a node for a byte lies at the
// node's base plus the byte, if that slot names the node as its parent.
type trie struct {
	nodes []trieSlot
}

type trieSlot struct {
	base   int32 // of its children; 0: none
	parent int32 // -1: the slot is free
	id     int32 // of the string that ends here, -1: none
}

// trieEntry is a string and its id.
type trieEntry struct {
	text string
	id   int32
}

// newTrie makes a trie of entries, which it sorts; of equal strings the last counts, the empty one is left out.
func newTrie(entries []trieEntry) *trie {
	slices.SortStableFunc(entries, func(a, b trieEntry) int { return cmp.Compare(a.text, b.text) })
	b := trieBuilder{t: &trie{}}
	b.grow(257)
	b.take(0, 0)
	type job struct {
		lo, hi int // of entries, which share their first depth bytes
		depth  int
		node   int32
	}
	jobs := []job{{0, len(entries), 0, 0}}
	var labels []byte
	var starts []int
	for len(jobs) > 0 {
		j := jobs[len(jobs)-1]
		jobs = jobs[:len(jobs)-1]
		for j.lo < j.hi && len(entries[j.lo].text) == j.depth {
			if j.depth > 0 {
				b.t.nodes[j.node].id = entries[j.lo].id
			}
			j.lo++
		}
		if j.lo == j.hi {
			continue
		}
		labels, starts = labels[:0], starts[:0]
		for i := j.lo; i < j.hi; i++ {
			if c := entries[i].text[j.depth]; len(labels) == 0 || labels[len(labels)-1] != c {
				labels = append(labels, c)
				starts = append(starts, i)
			}
		}
		base := b.place(labels)
		b.t.nodes[j.node].base = base
		starts = append(starts, j.hi)
		for i, c := range labels {
			child := base + int32(c)
			b.take(child, j.node)
			jobs = append(jobs, job{starts[i], starts[i+1], j.depth + 1, child})
		}
	}
	b.t.nodes = slices.Clip(b.t.nodes)
	return b.t
}

// trieBuilder keeps the free slots of a growing trie.
type trieBuilder struct {
	t    *trie
	free []int32 // the next free slot at or after each one, with shortcuts
}

func (b *trieBuilder) grow(n int) {
	for i := len(b.t.nodes); i < n; i++ {
		b.t.nodes = append(b.t.nodes, trieSlot{parent: -1, id: -1})
		b.free = append(b.free, int32(i))
	}
	if len(b.free) == len(b.t.nodes) { // the end of the chain
		b.free = append(b.free, int32(len(b.t.nodes)))
	} else {
		b.free[len(b.t.nodes)] = int32(len(b.t.nodes))
	}
}

func (b *trieBuilder) take(at, parent int32) {
	b.t.nodes[at].parent = parent
	b.free[at] = at + 1
}

// nextFree follows and shortens the chain.
func (b *trieBuilder) nextFree(at int32) int32 {
	root := at
	for int(root) < len(b.t.nodes) && b.free[root] != root {
		root = b.free[root]
	}
	for at != root {
		at, b.free[at] = b.free[at], root
	}
	return root
}

// place finds a base at which the slots of all labels, which are in order, are free.
func (b *trieBuilder) place(labels []byte) int32 {
	const tries = 256 // then at the end, where there is room
	at := b.nextFree(1)
	for range tries {
		if int(at) >= len(b.t.nodes) {
			break
		}
		base := at - int32(labels[0])
		if base > 0 && int(base)+256 <= len(b.t.nodes) && b.fits(base, labels) {
			return base
		}
		at = b.nextFree(at + 1)
	}
	base := int32(len(b.t.nodes))
	b.free = b.free[:len(b.t.nodes)]
	b.grow(len(b.t.nodes) + 256)
	return base
}

func (b *trieBuilder) fits(base int32, labels []byte) bool {
	for _, c := range labels[1:] {
		if b.t.nodes[base+int32(c)].parent >= 0 {
			return false
		}
	}
	return true
}

// next is the child of a node, -1 when there is none.
func (t *trie) next(node int32, c byte) int32 {
	base := t.nodes[node].base
	if base == 0 {
		return -1
	}
	if child := base + int32(c); t.nodes[child].parent == node {
		return child
	}
	return -1
}

// walk is the node that s leads to, -1 when no string starts with s.
func (t *trie) walk(s string) int32 {
	node := int32(0)
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.next(node, s[i])
	}
	return node
}

// longest is the longest string that s starts with, from a node on.
func (t *trie) longest(node int32, s string) (length int, id int32) {
	id = -1
	for i := 0; i < len(s); i++ {
		if node = t.next(node, s[i]); node < 0 {
			break
		}
		if n := t.nodes[node].id; n >= 0 {
			length, id = i+1, n
		}
	}
	return length, id
}
