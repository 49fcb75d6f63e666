package tokenizer

import (
	"cmp"
	"slices"
)

// trie finds which of many strings are prefixes of a text. It is a double array: the child of a node for a byte is at
// the node's base plus the byte, if that slot names the node as its parent.
type trie struct {
	nodes []trieSlot
}

type trieSlot struct {
	base   int32 // of its children; 0: none
	parent int32 // -1: the slot is free
	id     int32 // of the string that ends here; -1: none
}

// trieEntry is a string and its id.
type trieEntry struct {
	text string
	id   int32
}

// newTrie builds a trie of entries, which it sorts. Of equal strings the last one wins; empty ones are left out.
func newTrie(entries []trieEntry) *trie {
	slices.SortStableFunc(entries, func(a, b trieEntry) int { return cmp.Compare(a.text, b.text) })
	b := trieBuilder{t: &trie{}}
	b.grow(257)
	b.take(0, 0)
	type job struct {
		lo, hi int // range of entries, which share their first depth bytes
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

// trieBuilder tracks the free slots of a growing trie.
type trieBuilder struct {
	t    *trie
	free []int32 // per slot, the next free slot at or after it, with path compression
}

func (b *trieBuilder) grow(n int) {
	for i := len(b.t.nodes); i < n; i++ {
		b.t.nodes = append(b.t.nodes, trieSlot{parent: -1, id: -1})
		b.free = append(b.free, int32(i))
	}
	if len(b.free) == len(b.t.nodes) { // the sentinel at the end
		b.free = append(b.free, int32(len(b.t.nodes)))
	} else {
		b.free[len(b.t.nodes)] = int32(len(b.t.nodes))
	}
}

func (b *trieBuilder) take(at, parent int32) {
	b.t.nodes[at].parent = parent
	b.free[at] = at + 1
}

// nextFree returns the first free slot at or after at and compresses the path.
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

// place returns a base at which the slots of all labels are free. labels is sorted.
func (b *trieBuilder) place(labels []byte) int32 {
	const tries = 256 // then it uses the end, which is free
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

// next returns the child of a node for c, or -1.
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

// walk returns the node of s, or -1 if no string has the prefix s.
func (t *trie) walk(s string) int32 {
	node := int32(0)
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.next(node, s[i])
	}
	return node
}

// longest returns the longest string below node that is a prefix of s.
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
