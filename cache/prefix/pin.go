package prefix

import "time"

// pinShare is the share of the budget within which pins count. Beyond it they protect nothing, so that clients that pin
// everything do not displace the entries of those that pin nothing.
const pinShare = 0.5

// Pin protects the state of the first n positions of what the session has stored until a time: nodes that are not
// pinned are evicted before it. A node that reaches past n is pinned as a whole.
func (s *Session) Pin(n int, until time.Time) {
	for p := s.at; p.parent != nil; p = p.parent {
		if p.start() < n && until.After(p.pinned) {
			p.pinned = until
		}
	}
}

// spares returns the function by which eviction spares nodes at a moment.
func (t *Tree) spares(now time.Time) func(*node) bool {
	pinned := int64(0)
	t.each(func(n *node) {
		if n.pinned.After(now) {
			pinned += t.size(n)
		}
	})
	within := float64(pinned) <= pinShare*float64(t.budget)
	return func(n *node) bool { return within && n.pinned.After(now) }
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
