package trie

import (
	"slices"

	"github.com/ingotml/ingot/internal/limits/work"
)

// Finder finds strings in a text: the leftmost match, and of those the longest. Time is linear in the text, whatever
// the strings are: it reads the text backwards, with the automaton of Aho and Corasick for the reversed strings
// (https://doi.org/10.1145/360825.360855), which so knows the longest string that begins at each place. The nil Finder
// finds nothing. It is immutable.
type Finder struct {
	*Trie
	fail    []int32 // by node: of the longest end of its string that is in the trie too
	longest []int32 // by node: of the longest entry that is an end of its string; 0: none
	depth   []int32 // by node: length of its string
	reach   int     // length of the longest entry
}

// NewFinder returns a finder of entries, which it changes; nil if there are none. Of equal strings the last one wins.
func NewFinder(entries []Entry) *Finder {
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Text == "" })
	if len(entries) == 0 {
		return nil
	}
	f := &Finder{}
	for i, e := range entries {
		b := []byte(e.Text)
		slices.Reverse(b)
		entries[i].Text = string(b)
		f.reach = max(f.reach, len(b))
	}
	f.Trie = New(entries)
	n := len(f.Nodes)
	f.fail, f.longest, f.depth = make([]int32, n), make([]int32, n), make([]int32, n)
	for _, node := range f.byDepth() {
		parent := f.Nodes[node].Parent
		if parent != 0 {
			f.fail[node] = f.step(f.fail[parent], byte(node-f.Nodes[parent].Base))
		}
		f.longest[node] = f.longest[f.fail[node]]
		if f.Nodes[node].ID >= 0 {
			f.longest[node] = node
		}
	}
	return f
}

// byDepth returns the nodes but the root, ordered by their depths, which it sets.
func (f *Finder) byDepth() []int32 {
	levels := make([][]int32, f.reach+1)
	var path []int32
	for at := range f.Nodes {
		for node := int32(at); node > 0 && f.depth[node] == 0 && f.Nodes[node].Parent >= 0; node = f.Nodes[node].Parent {
			path = append(path, node)
		}
		for _, node := range slices.Backward(path) {
			d := f.depth[f.Nodes[node].Parent] + 1
			f.depth[node] = d
			levels[d] = append(levels[d], node)
		}
		path = path[:0]
	}
	return slices.Concat(levels...)
}

// step returns the node of the longest end of a node's string with c after it that is in the trie.
func (f *Finder) step(node int32, c byte) int32 {
	for {
		if next := f.next(node, c); next >= 0 {
			return next
		}
		if node == 0 {
			return 0
		}
		node = f.fail[node]
	}
}

// Search is one pass through a text.
type Search struct {
	f    *Finder
	s    string
	done int   // up to where the matches are known
	hits []hit // of those that may be asked for, the last first
}

type hit struct {
	at   int
	node int32
}

// block is how much of a text is read at a time.
const block = 32 << 10

// Search begins a pass through a text.
func (f *Finder) Search(s string) Search { return Search{f: f, s: s} }

// Next returns the first match that starts at or after at, which must not decrease; from is -1 if there is none. The
// error is the meter's.
func (x *Search) Next(m *work.Meter, at int) (from, to int, id int32, err error) {
	if x.f == nil {
		return -1, 0, 0, nil
	}
	for {
		for n := len(x.hits); n > 0; n = len(x.hits) {
			h := x.hits[n-1]
			x.hits = x.hits[:n-1]
			if h.at >= at {
				return h.at, h.at + int(x.f.depth[h.node]), x.f.Nodes[h.node].ID, nil
			}
		}
		x.done = max(x.done, at)
		if x.done >= len(x.s) {
			return -1, 0, 0, nil
		}
		if err := x.read(m); err != nil {
			return -1, 0, 0, err
		}
	}
}

// read finds the matches that start in the next block.
func (x *Search) read(m *work.Meter) error {
	f, from := x.f, x.done
	to := min(len(x.s), from+max(block, 4*f.reach))
	end := min(len(x.s), to+f.reach)
	node := int32(0)
	for i := end - 1; i >= from; i-- {
		node = f.step(node, x.s[i])
		if n := f.longest[node]; n != 0 && i < to {
			x.hits = append(x.hits, hit{i, n})
		}
	}
	x.done = to
	return m.Spend(2 * (end - from))
}
