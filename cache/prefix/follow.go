package prefix

import (
	"fmt"
	"hash/fnv"

	"github.com/ingotml/ingot/cache"
)

// Log is called by a tree for each change, before it is made. A tree with the same kinds of layers that makes the same
// changes, and follows in what it evicts, has the same nodes.
type Log interface {
	Began(s *Session, seq *cache.Sequence, keys []Key, most int) // Tree.BeginWithin
	Continued(s *Session, keys []Key)
	Snapshotted(s *Session, user bool)
	Stored(s *Session, keys []Key) // keys up to the sequence's offset
	Left(s *Session)
	Evicted(node uint64)
}

// SetLog sets the log of an empty tree.
func (t *Tree) SetLog(l Log) { t.log = l }

// Follow makes an empty tree evict only what Evict says.
func (t *Tree) Follow() { t.follows = true }

// Evict evicts a node that the log of another tree named.
func (t *Tree) Evict(id uint64) error {
	var found *node
	t.each(func(n *node) {
		if n.id == id {
			found = n
		}
	})
	if found == nil || found.parent == nil || len(found.children) > 1 {
		return fmt.Errorf("prefix: there is no node %d to evict", id)
	}
	t.drain(found)
	return nil
}

// Checksum returns a hash of the tree's nodes. Trees with the same nodes have the same one.
func (t *Tree) Checksum() uint64 {
	h := fnv.New64a()
	t.each(func(n *node) {
		held := 0
		for _, s := range n.snapshots {
			if s != nil {
				held++
			}
		}
		fmt.Fprintln(h, n.id, n.end, held, n.edge)
	})
	return h.Sum64()
}

// node numbers a node, which is in the part of its parent.
func (t *Tree) node(n node) *node {
	t.nodes++
	n.id, n.of = t.nodes, n.parent.of
	return &n
}
