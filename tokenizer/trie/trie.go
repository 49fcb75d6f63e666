// Package trie finds which of many strings are prefixes of a text.
//
// Contract: a Trie is immutable. The root is node 0. A step takes constant time, so that encoders may walk Nodes
// themselves in their inner loops.
package trie

import (
	"cmp"
	"slices"
)

// Trie finds which of many strings are prefixes of a text. It is a double array: the child of a node for a byte is at
// the node's base plus the byte, if that slot names the node as its parent.
type Trie struct {
	Nodes []Slot
}

// Slot is a node, or a free place for one.
type Slot struct {
	Base   int32 // of its children; 0: none
	Parent int32 // -1: the slot is free
	ID     int32 // of the string that ends here; -1: none
}

// Entry is a string and its id.
type Entry struct {
	Text string
	ID   int32
}

// New builds a trie of entries, which it sorts. Of equal strings the last one wins; empty ones are left out.
func New(entries []Entry) *Trie {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Text, b.Text) })
	b := builder{t: &Trie{}}
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
		for j.lo < j.hi && len(entries[j.lo].Text) == j.depth {
			if j.depth > 0 {
				b.t.Nodes[j.node].ID = entries[j.lo].ID
			}
			j.lo++
		}
		if j.lo == j.hi {
			continue
		}
		labels, starts = labels[:0], starts[:0]
		for i := j.lo; i < j.hi; i++ {
			if c := entries[i].Text[j.depth]; len(labels) == 0 || labels[len(labels)-1] != c {
				labels = append(labels, c)
				starts = append(starts, i)
			}
		}
		base := b.place(labels)
		b.t.Nodes[j.node].Base = base
		starts = append(starts, j.hi)
		for i, c := range labels {
			child := base + int32(c)
			b.take(child, j.node)
			jobs = append(jobs, job{starts[i], starts[i+1], j.depth + 1, child})
		}
	}
	b.t.Nodes = slices.Clip(b.t.Nodes)
	return b.t
}

// Valid reports whether a trie that comes from a file can be walked, and all its ids are below limit.
func (t *Trie) Valid(limit int32) bool {
	for _, n := range t.Nodes {
		if n.Base < 0 || int(n.Base)+256 > len(t.Nodes) || n.ID < -1 || n.ID >= limit {
			return false
		}
	}
	return len(t.Nodes) > 0
}

// builder tracks the free slots of a growing trie.
type builder struct {
	t    *Trie
	free []int32 // per slot, the next free slot at or after it, with path compression
}

func (b *builder) grow(n int) {
	for i := len(b.t.Nodes); i < n; i++ {
		b.t.Nodes = append(b.t.Nodes, Slot{Parent: -1, ID: -1})
		b.free = append(b.free, int32(i))
	}
	if len(b.free) == len(b.t.Nodes) { // the sentinel at the end
		b.free = append(b.free, int32(len(b.t.Nodes)))
	} else {
		b.free[len(b.t.Nodes)] = int32(len(b.t.Nodes))
	}
}

func (b *builder) take(at, parent int32) {
	b.t.Nodes[at].Parent = parent
	b.free[at] = at + 1
}

// nextFree returns the first free slot at or after at and compresses the path.
func (b *builder) nextFree(at int32) int32 {
	root := at
	for int(root) < len(b.t.Nodes) && b.free[root] != root {
		root = b.free[root]
	}
	for at != root {
		at, b.free[at] = b.free[at], root
	}
	return root
}

// place returns a base at which the slots of all labels are free. labels is sorted.
func (b *builder) place(labels []byte) int32 {
	const tries = 256 // then it uses the end, which is free
	at := b.nextFree(1)
	for range tries {
		if int(at) >= len(b.t.Nodes) {
			break
		}
		base := at - int32(labels[0])
		if base > 0 && int(base)+256 <= len(b.t.Nodes) && b.fits(base, labels) {
			return base
		}
		at = b.nextFree(at + 1)
	}
	base := int32(len(b.t.Nodes))
	b.free = b.free[:len(b.t.Nodes)]
	b.grow(len(b.t.Nodes) + 256)
	return base
}

func (b *builder) fits(base int32, labels []byte) bool {
	for _, c := range labels[1:] {
		if b.t.Nodes[base+int32(c)].Parent >= 0 {
			return false
		}
	}
	return true
}

// next returns the child of a node for c, or -1.
func (t *Trie) next(node int32, c byte) int32 {
	base := t.Nodes[node].Base
	if base == 0 {
		return -1
	}
	if child := base + int32(c); t.Nodes[child].Parent == node {
		return child
	}
	return -1
}

// Walk returns the node of s, or -1 if no string has the prefix s.
func (t *Trie) Walk(s string) int32 {
	node := int32(0)
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.next(node, s[i])
	}
	return node
}

// Longest returns the longest string below node that is a prefix of s, and how many bytes of s it read.
func (t *Trie) Longest(node int32, s string) (length int, id int32, read int) {
	id = -1
	for ; read < len(s); read++ {
		if node = t.next(node, s[read]); node < 0 {
			break
		}
		if n := t.Nodes[node].ID; n >= 0 {
			length, id = read+1, n
		}
	}
	return length, id, read
}
