package prefix

import (
	"fmt"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
)

// Key identifies one position of a sequence as far as cached state depends on it: a token, or a substitute.
type Key uint64

// pictured marks keys of pictures.
const pictured Key = 1 << 63

// Tokens returns the keys of tokens.
func Tokens(ids []int32) []Key {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i] = Key(uint32(id))
	}
	return keys
}

// Picture returns the key of every position of a picture, given a hash of its content.
func Picture(hash uint64) Key { return Key(hash) | pictured }

// Pair returns the key of a position whose state also depends on the next token, as in some drafts.
func Pair(token, next int32) Key { return Key(uint32(token))<<31 | Key(uint32(next)) }

// node is an edge of the tree and the state at its end. The root has no parent, edge or state.
type node struct {
	parent    *node
	children  []*node
	edge      []Key
	end       int // position of the edge's end
	of        *part
	snapshots cache.Snapshots
	used      uint64    // tree clock when a session last began or ended here
	id        uint64    // counts the tree's nodes from 1; 0: the root
	user      bool      // marked by the user: not merged with its child and not extended in place
	pinned    time.Time // evicted last until then; see [Session.Pin]
}

func (n *node) start() int { return n.end - len(n.edge) }

func (n *node) held() bool {
	return slices.ContainsFunc(n.snapshots, func(s *cache.Snapshot) bool { return s != nil })
}

// whole reports whether a node has a snapshot of every layer that can have one.
func (t *Tree) whole(n *node) bool {
	return t.holds(n, func(k cache.Kind) bool { return k != cache.None })
}

// holds reports whether a node has snapshots of all layers of some kinds.
func (t *Tree) holds(n *node, kinds func(cache.Kind) bool) bool {
	for i, k := range t.kinds {
		if kinds(k) && (i >= len(n.snapshots) || n.snapshots[i] == nil) {
			return false
		}
	}
	return true
}

// splittable reports whether the state of all layers can be split, and so restored to any position that it covers.
func (t *Tree) splittable() bool {
	return !slices.ContainsFunc(t.kinds, func(k cache.Kind) bool { return !k.Whole() && k != cache.None })
}

// child returns the child whose edge begins with first. Siblings have distinct first keys.
func (n *node) child(first Key) *node {
	for _, c := range n.children {
		if c.edge[0] == first {
			return c
		}
	}
	return nil
}

// Common returns the length of the common prefix.
func Common(a, b []Key) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// match follows keys down from a node. It returns the last node reached, wholly or in part, and the number of keys
// matched.
func (n *node) match(keys []Key) (last *node, matched int) {
	for matched < len(keys) {
		c := n.child(keys[matched])
		if c == nil {
			break
		}
		k := Common(c.edge, keys[matched:])
		n, matched = c, matched+k
		if k < len(c.edge) {
			break
		}
	}
	return n, matched
}

// path returns the nodes from the root's child down to n.
func (n *node) path() []*node {
	var path []*node
	for ; n.parent != nil; n = n.parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// split cuts a node's edge after k keys. The node keeps its end, children and mark; a new parent takes the first part.
func (t *Tree) split(n *node, k int) *node {
	if k <= 0 || k >= len(n.edge) {
		panic(fmt.Sprintf("prefix: split of %d keys at %d", len(n.edge), k))
	}
	upper := t.node(node{parent: n.parent, children: []*node{n}, edge: slices.Clone(n.edge[:k]), end: n.start() + k,
		used: n.used, pinned: n.pinned})
	n.parent.children[slices.Index(n.parent.children, n)] = upper
	n.parent, n.edge = upper, slices.Clone(n.edge[k:])
	before := t.size(n)
	upper.snapshots, n.snapshots = n.snapshots.Split(upper.end)
	t.grow(n, t.size(upper)+t.size(n)-before)
	return upper
}

// merge joins a node with its only child, which replaces it.
func (t *Tree) merge(n *node) {
	if n.parent == nil || len(n.children) != 1 {
		panic(fmt.Sprintf("prefix: merge of a node with %d children", len(n.children)))
	}
	c := n.children[0]
	before := t.size(n) + t.size(c)
	c.snapshots = n.snapshots.Merge(c.snapshots)
	t.grow(c, t.size(c)-before)
	c.edge = slices.Concat(n.edge, c.edge)
	c.parent, c.used, c.pinned = n.parent, max(n.used, c.used), later(n.pinned, c.pinned)
	n.parent.children[slices.Index(n.parent.children, n)] = c
	n.parent, n.children, n.snapshots = nil, nil, nil
}

// remove removes a leaf.
func (t *Tree) remove(n *node) {
	if n.parent == nil || len(n.children) > 0 {
		panic(fmt.Sprintf("prefix: removal of a node with %d children", len(n.children)))
	}
	t.drop(n)
	n.parent.children = slices.DeleteFunc(n.parent.children, func(c *node) bool { return c == n })
	n.parent = nil
}

// drop closes a node's snapshots.
func (t *Tree) drop(n *node) {
	t.grow(n, -t.size(n))
	n.snapshots.Close()
	n.snapshots = nil
}

// advance follows keys below a node, splits where they diverge, and appends the rest. It returns the node at the end of
// keys. s is the session that moves there.
func (t *Tree) advance(s *Session, n *node, keys []Key) *node {
	for len(keys) > 0 {
		c := n.child(keys[0])
		if c == nil {
			return t.append(s, n, keys)
		}
		k := Common(c.edge, keys)
		if k < len(c.edge) {
			c = t.split(c, k)
		}
		n, keys = c, keys[k:]
	}
	return n
}

// append adds keys below a node: to its own edge if nobody else needs the state at its end, else as a child.
func (t *Tree) append(s *Session, n *node, keys []Key) *node {
	if n.parent != nil && len(n.children) == 0 && !n.user && !t.stoodOn(n, s) {
		t.drop(n) // replaced by the state at the new end
		n.edge = append(slices.Clip(n.edge), keys...)
		n.end += len(keys)
		return n
	}
	c := t.node(node{parent: n, edge: slices.Clone(keys), end: n.end + len(keys), used: n.used})
	n.children = append(n.children, c)
	return c
}
