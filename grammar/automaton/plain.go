package automaton

import (
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// maxTotal bounds the states that isTotal follows.
const maxTotal = 256

// isTotal reports whether any plain text may follow s, through whatever states, and bounds the tokens to the end after
// it: as inside a text that a pattern must match somewhere.
func (a *Automaton) isTotal(s *state) (most int64, ok bool) {
	if s.totalKnown {
		return s.totalMost, s.total
	}
	s.totalKnown = true
	seen := map[*state]bool{s: true}
	order := []*state{s}
	for i := 0; i < len(order); i++ {
		at := order[i]
		if at.total {
			most = max(most, at.totalMost)
			continue
		}
		add := func(to *state) bool {
			if to == nil || to == a.dead || to.unknown || to.rounded || to.tokens >= infinite || len(order) > maxTotal {
				return false
			}
			if most = max(most, to.tokens); !seen[to] {
				seen[to] = true
				order = append(order, to)
			}
			return true
		}
		for b := byte(' '); b < 0x80; b++ {
			plain := b != '"' && b != '\\'
			if plain && (b == ' ' || a.classOf[b] != a.classOf[b-1] || b-1 == '"' || b-1 == '\\') && !add(a.step(at, b)) {
				return 0, false
			}
		}
		if !add(a.beyondNext(at)) {
			return 0, false
		}
	}
	for _, at := range order {
		at.totalKnown, at.total, at.totalMost = true, true, most
	}
	return most, true
}

// totalNext is isTotal for states from which plain characters lead to several states.
func (a *Automaton) totalNext(s *state) (most int64, ok bool) {
	if a.plainNext(s) != nil || a.step(s, ' ') == a.dead || a.step(s, '~') == a.dead {
		return 0, false
	}
	return a.isTotal(s)
}

// takeAllPlain adds all plain tokens to m.
func (a *Automaton) takeAllPlain(m *mask, most int64) {
	for _, of := range a.v.Plain {
		trie.Or(m.bits, of)
	}
	trie.Or(m.bits, a.v.LongPlain)
	m.any, m.most = true, max(m.most, most)
}

// beyondNext returns the state that every character of several bytes leads to from s, or nil.
func (a *Automaton) beyondNext(s *state) *state {
	if !s.beyondKnown {
		s.beyondKnown = true
		s.beyond = a.findBeyondNext(s)
	}
	return s.beyond
}

// Most tokens of a vocabulary are plain: whole characters that need no escape in a JSON string. Inside a string only
// their number of characters matters, and only near a length limit. A mask therefore takes them by length, without a
// walk.

// takePlain sets the bits of the plain tokens for which take accepts the state they lead to, if every plain character
// leads from s to the same state. It returns the tries with the tokens that still need a walk.
func (a *Automaton) takePlain(bits []uint32, s *state, take func(*state) bool) []*trie.Trie {
	var chain []*state
	at := s
	for len(chain) < vocabulary.PlainLengths {
		next := a.plainNext(at)
		if next == nil || next.unknown {
			return []*trie.Trie{&a.v.Plains, &a.v.Rest}
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
			for _, of := range a.v.Plain[i:] {
				trie.Or(bits, of)
			}
			if next.rounded {
				return []*trie.Trie{&a.v.Rest, &a.v.Long}
			}
			trie.Or(bits, a.v.LongPlain)
			return []*trie.Trie{&a.v.Rest}
		}
		if a.v.HasPlain[i] && take(next) {
			trie.Or(bits, a.v.Plain[i])
		}
	}
	if len(chain) < vocabulary.PlainLengths {
		return []*trie.Trie{&a.v.Rest}
	}
	return []*trie.Trie{&a.v.Rest, &a.v.Long}
}

// plainNext returns the state that every plain character leads to from s, or nil if there are several.
func (a *Automaton) plainNext(s *state) *state {
	if !s.plainNextKnown {
		s.plainNextKnown = true
		s.plainNext = a.findPlainNext(s)
	}
	return s.plainNext
}

func (a *Automaton) findPlainNext(s *state) *state {
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
func (a *Automaton) findBeyondNext(s *state) *state {
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
func (a *Automaton) afterChar(s *state) (to *state, ok bool) {
	var call *frame
	var places []place
	for _, p := range s.places {
		set := a.p.Sets[a.p.Nodes[p.node].Set]
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
	if call == nil || a.p.Lexes {
		return nil, false
	}
	end := a.beyondNext(a.intern(places, false, false))
	if end == nil || len(end.places) > 0 || !end.unknown {
		return nil, false
	}
	return a.close([]place{{call.node, call.up}}), true
}

// commonTarget returns the state that every byte from low to high leads to, or nil if there are several.
func (a *Automaton) commonTarget(s *state, low, high byte) *state {
	to := a.step(s, low)
	for b := low; b < high; b++ {
		if a.classOf[b+1] != a.classOf[b] && a.step(s, b+1) != to {
			return nil
		}
	}
	return to
}
