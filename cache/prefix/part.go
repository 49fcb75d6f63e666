package prefix

import "time"

// Public owns the entries that all owners continue from: what the operator has evaluated ahead of time. No name of an
// owner is equal to it.
const Public = "*"

// part is what one owner has of a tree. Nothing leads from one part to another, so a prompt of one owner finds nothing
// of another one's.
type part struct {
	owner string
	root  *node
	bytes int64     // of its snapshots
	until time.Time // it has a share of the budget until then
}

// restFor is how long an owner that begins no session keeps its share of the budget.
const restFor = 10 * time.Minute

// part returns the part of an owner.
func (t *Tree) part(owner string) *part {
	for _, p := range t.parts {
		if p.owner == owner {
			return p
		}
	}
	p := &part{owner: owner}
	p.root = &node{of: p}
	t.parts = append(t.parts, p)
	return p
}

// use records that a session begins with what a part has.
func (p *part) use(now time.Time) { p.until = later(p.until, now.Add(restFor)) }

// grow counts bytes that a node takes.
func (t *Tree) grow(n *node, bytes int64) {
	t.bytes += bytes
	n.of.bytes += bytes
}

// shares returns the function by which eviction divides the budget at a moment: in equal shares for the owners that
// are active. The others have none.
func (t *Tree) shares(now time.Time) func(*part) int64 {
	active := int64(0)
	for _, p := range t.parts {
		if p.until.After(now) {
			active++
		}
	}
	return func(p *part) int64 {
		if !p.until.After(now) {
			return 0
		}
		return t.budget / active
	}
}

// order returns the function by which eviction sorts nodes at a moment: lower ones go first. An owner that has more
// than its share gives up entries before those that have less, and an owner its pinned entries after the others.
func (t *Tree) order(now time.Time) func(*node) int {
	share := t.shares(now)
	pinned := map[*part]int64{}
	t.each(func(n *node) {
		if n.pinned.After(now) {
			pinned[n.of] += t.size(n)
		}
	})
	return func(n *node) (class int) {
		s := share(n.of)
		if n.of.bytes <= s {
			class += 2
		}
		if n.pinned.After(now) && float64(pinned[n.of]) <= pinShare*float64(s) {
			class++
		}
		return class
	}
}
