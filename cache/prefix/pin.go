package prefix

import "time"

// pinShare is the part of an owner's share of the budget within which its pins count. Beyond it they protect nothing,
// so that clients that pin everything do not displace the entries of those that pin nothing.
const pinShare = 0.5

// Pin protects the state of the first n positions of what the session has stored until a time: nodes that are not
// pinned are evicted before it. A node that reaches past n is pinned as a whole.
func (s *Session) Pin(n int, until time.Time) {
	for p := s.at; p.parent != nil; p = p.parent {
		if p.start() < n && until.After(p.pinned) {
			p.pinned = until
		}
	}
	s.of.until = later(s.of.until, until)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
