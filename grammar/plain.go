package grammar

import "github.com/ingotml/ingot/grammar/trie"

// Most tokens of a vocabulary are plain: whole characters that need no escape in a JSON string. Inside a string only
// their number of characters matters, and only near a length limit. A mask therefore takes them by length, without a
// walk.

// plainLengths is the largest length in characters for which plain tokens have a mask of their own.
const plainLengths = countHorizon

// takePlain sets the bits of the plain tokens for which take accepts the state they lead to, if every plain character
// leads from s to the same state. It returns the tries with the tokens that still need a walk.
func (a *automaton) takePlain(bits []uint32, s *state, take func(*state) bool) []*trie.Trie {
	var chain []*state
	at := s
	for len(chain) < plainLengths {
		next := a.plainNext(at)
		if next == nil || next.unknown {
			return []*trie.Trie{&a.v.plains, &a.v.rest}
		}
		if next == a.dead {
			break
		}
		chain = append(chain, next)
		if next == at {
			break
		}
		at = next
	}
	for i, next := range chain {
		// a loop: all longer tokens lead here too
		if i == len(chain)-1 && (i > 0 && next == chain[i-1] || i == 0 && next == s) {
			if !take(next) {
				break
			}
			for _, of := range a.v.plain[i:] {
				trie.Or(bits, of)
			}
			if next.rounded {
				return []*trie.Trie{&a.v.rest, &a.v.long}
			}
			trie.Or(bits, a.v.longPlain)
			return []*trie.Trie{&a.v.rest}
		}
		if a.v.hasPlain[i] && take(next) {
			trie.Or(bits, a.v.plain[i])
		}
	}
	if len(chain) < plainLengths {
		return []*trie.Trie{&a.v.rest}
	}
	return []*trie.Trie{&a.v.rest, &a.v.long}
}

// plainNext returns the state that every plain character leads to from s, or nil if there are several.
func (a *automaton) plainNext(s *state) *state {
	if !s.plainNextKnown {
		s.plainNextKnown = true
		s.plainNext = a.findPlainNext(s)
	}
	return s.plainNext
}

func (a *automaton) findPlainNext(s *state) *state {
	to := a.step(s, ' ')
	for b := byte('!'); b < 0x80; b++ {
		switch {
		case b == '"' || b == '\\':
		case b-1 != '"' && b-1 != '\\' && a.classOf[b] == a.classOf[b-1]:
		case a.step(s, b) != to:
			return nil
		}
	}
	if a.beyondNext(s) != to {
		return nil
	}
	return to
}

// findBeyondNext returns the state that every character of several bytes leads to from s, or nil if there are several.
func (a *automaton) findBeyondNext(s *state) *state {
	if to, ok := a.afterChar(s); ok {
		return to
	}
	var to *state
	// Table 3-7 of the Unicode standard: well-formed UTF-8 byte sequences.
	for _, l := range []struct{ from, to, low, high byte }{{0xc2, 0xdf, 0x80, 0xbf}, {0xe0, 0xe0, 0xa0, 0xbf},
		{0xe1, 0xec, 0x80, 0xbf},
		{0xed, 0xed, 0x80, 0x9f}, {0xee, 0xef, 0x80, 0xbf}, {0xf0, 0xf0, 0x90, 0xbf}, {0xf1, 0xf3, 0x80, 0xbf},
		{0xf4, 0xf4, 0x80, 0x8f}} {
		for b := l.from; b <= l.to; b++ {
			if b > l.from && a.classOf[b] == a.classOf[b-1] {
				continue
			}
			end := a.commonTarget(a.step(s, b), l.low, l.high)
			for length := 2; end != nil && (length == 2 && b >= 0xe0 || length == 3 && b >= 0xf0); length++ {
				end = a.commonTarget(end, 0x80, 0xbf)
			}
			if to == nil {
				to = end
			}
			if end == nil || end != to {
				return nil
			}
		}
	}
	return to
}

// afterChar is findBeyondNext for a state in which only the rule of a character takes bytes beyond ASCII. What the rule
// takes is found once for all states that call it.
func (a *automaton) afterChar(s *state) (to *state, ok bool) {
	var call *frame
	var places []place
	for _, p := range s.places {
		set := a.p.sets[a.p.nodes[p.node].set]
		if set[2]|set[3] == 0 {
			continue
		}
		if p.frame == a.bottom || p.frame == a.hidden || p.frame.repeat || p.frame.min != 1 ||
			call != nil && call != p.frame {
			return nil, false
		}
		call = p.frame
		places = append(places, place{p.node, a.hidden})
	}
	if call == nil || a.p.lexes {
		return nil, false
	}
	end := a.beyondNext(a.intern(places, false, false))
	if end == nil || len(end.places) > 0 || !end.unknown {
		return nil, false
	}
	return a.close([]place{{call.node, call.up}}), true
}

// commonTarget returns the state that every byte from low to high leads to, or nil if there are several.
func (a *automaton) commonTarget(s *state, low, high byte) *state {
	to := a.step(s, low)
	for b := low; b < high; b++ {
		if a.classOf[b+1] != a.classOf[b] && a.step(s, b+1) != to {
			return nil
		}
	}
	return to
}
