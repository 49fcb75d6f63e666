package prefix

import (
	"slices"

	"github.com/ingotml/ingot/cache"
)

// mostWithin bounds how many nodes that a prompt diverges from are read.
const mostWithin = 8

// fetch reads from the second tier what a prompt can use beyond a part of the tree and its first keys, which the caller
// has already.
func (t *Tree) fetch(p *part, keys []Key, has int) {
	if t.disk == nil {
		return
	}
	last, matched := p.root.match(keys)
	var from []int
	for _, n := range last.path() {
		if n.end <= matched {
			from = append(from, n.end)
		}
	}
	whole, within := t.disk.find(p.owner, keys, from...)
	t.fetchPath(p, keys, has, whole)
	// Among nodes that share a part with the prompt, choose the longest match.
	_, best := p.root.match(keys)
	best = max(best, has)
	var take fileName
	for _, f := range within[:min(len(within), mostWithin)] {
		if n := f.start + Common(t.disk.edge(f), keys[f.start:]); n > best {
			best, take = n, f
		}
	}
	if take.end > 0 {
		t.fetchNode(p, take, keys)
	}
}

// fetchPath reads the nodes that lead to the farthest state on a prompt's path, unless the tree has one as far. files
// are ordered by their ends, then by their starts. Each process that a conversation continues in leaves a longer file;
// files that a longer one covers are not read.
func (t *Tree) fetchPath(p *part, keys []Key, has int, files []fileName) {
	for len(files) > 0 {
		end := files[len(files)-1].end
		covered, restorable := t.reach(p, keys)
		if max(restorable, has) >= end {
			return
		}
		next := -1
		for i, f := range files {
			if f.start <= covered {
				next = i
			}
		}
		if next < 0 || files[next].end < end && files[next].end <= covered {
			files = files[:len(files)-1] // a file before it was damaged or is gone
			continue
		}
		f := files[next]
		files = slices.Delete(files, next, next+1)
		if t.fetchNode(p, f, keys) && f.end == end {
			return
		}
	}
}

// reach returns how far a part of the tree covers a prompt with the state of layers that nodes hold in parts, and where
// it can restore all layers: there, or at the last end of a node with a snapshot of each.
func (t *Tree) reach(p *part, keys []Key) (covered, restorable int) {
	last, matched := p.root.match(keys)
	for _, n := range last.path() {
		if !t.holds(n, cache.Kind.Whole) {
			break
		}
		covered = min(n.end, matched)
		if n.end <= matched && t.whole(n) {
			restorable = n.end
		}
	}
	if t.splittable() {
		restorable = covered
	}
	return covered, restorable
}

// fetchNode reads one node, whose path matches keys at least up to its start. It reports whether it could.
func (t *Tree) fetchNode(p *part, f fileName, keys []Key) bool {
	h, all, ok := t.disk.load(t.thread, f, t.kinds)
	if ok {
		t.insert(p, slices.Concat(keys[:f.start], h.Edge), all)
	}
	return ok
}

// insert adds missing snapshots to the node at the end of keys. A snapshot that reaches back before the node is cut:
// the parents have that part.
func (t *Tree) insert(p *part, keys []Key, all cache.Snapshots) {
	n := t.place(p, keys)
	before := t.size(n)
	if n.snapshots == nil {
		n.snapshots = make(cache.Snapshots, len(t.kinds))
	}
	for i, s := range all {
		if s == nil {
			continue
		}
		if t.kinds[i].Whole() && s.From() < n.start() {
			var upper *cache.Snapshot
			if upper, s = cache.Split(s, n.start()); upper != nil {
				upper.Close()
			}
		}
		if n.snapshots[i] != nil || t.kinds[i].Whole() && s.From() > n.start() {
			s.Close()
			continue
		}
		n.snapshots[i] = s
	}
	t.grow(n, t.size(n)-before)
}

// place returns the node at the end of keys, and creates it if needed. It extends no existing node in place.
func (t *Tree) place(p *part, keys []Key) *node {
	last, matched := p.root.match(keys)
	if matched < last.end {
		last = t.split(last, matched-last.start())
	}
	if matched == len(keys) {
		return last
	}
	c := t.node(node{parent: last, edge: slices.Clone(keys[matched:]), end: len(keys), used: last.used})
	last.children = append(last.children, c)
	return c
}
