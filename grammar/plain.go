package grammar

// Most tokens of a vocabulary are plain: whole characters that stand in a JSON string as they are. Inside a string it only
// counts how many characters they have, and that only near a limit, so a mask takes them by their lengths without a walk.

// plainLengths is up to how many characters tokens are told apart by their lengths.
const plainLengths = countHorizon

// takePlain marks the plain tokens after which take holds of the state, if all characters lead from s the same way. It returns
// the tries of those tokens that are still to be walked.
func (a *automaton) takePlain(bits []uint32, s *state, take func(*state) bool) []*trie {
	var chain []*state
	at := s
	for len(chain) < plainLengths {
		next := a.plainNext(at)
		if next == nil || next.unknown {
			return []*trie{&a.v.plains, &a.v.rest}
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
		if i == len(chain)-1 && (i > 0 && next == chain[i-1] || i == 0 && next == s) { // and so on
			if !take(next) {
				break
			}
			for _, of := range a.v.plain[i:] {
				or(bits, of)
			}
			if next.rounded {
				return []*trie{&a.v.rest, &a.v.long}
			}
			or(bits, a.v.longPlain)
			return []*trie{&a.v.rest}
		}
		if a.v.hasPlain[i] && take(next) {
			or(bits, a.v.plain[i])
		}
	}
	if len(chain) < plainLengths {
		return []*trie{&a.v.rest}
	}
	return []*trie{&a.v.rest, &a.v.long}
}

func or(dst, src []uint32) {
	for i, w := range src {
		dst[i] |= w
	}
}

// plainNext is the state that every plain character leads to from s, nil where there are several.
func (a *automaton) plainNext(s *state) *state {
	if !s.looked {
		s.looked = true
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
	// Table 3-7 of the Unicode standard: well-formed byte sequences.
	for _, l := range []struct{ from, to, low, high byte }{{0xc2, 0xdf, 0x80, 0xbf}, {0xe0, 0xe0, 0xa0, 0xbf}, {0xe1, 0xec, 0x80, 0xbf},
		{0xed, 0xed, 0x80, 0x9f}, {0xee, 0xef, 0x80, 0xbf}, {0xf0, 0xf0, 0x90, 0xbf}, {0xf1, 0xf3, 0x80, 0xbf}, {0xf4, 0xf4, 0x80, 0x8f}} {
		for b := l.from; b <= l.to; b++ {
			if b > l.from && a.classOf[b] == a.classOf[b-1] {
				continue
			}
			end := a.among(a.step(s, b), l.low, l.high)
			for length := 2; end != nil && (length == 2 && b >= 0xe0 || length == 3 && b >= 0xf0); length++ {
				end = a.among(end, 0x80, 0xbf)
			}
			if end != to {
				return nil
			}
		}
	}
	return to
}

// among is where every byte from low to high leads, nil where that is not one state.
func (a *automaton) among(s *state, low, high byte) *state {
	to := a.step(s, low)
	for b := low; b < high; b++ {
		if a.classOf[b+1] != a.classOf[b] && a.step(s, b+1) != to {
			return nil
		}
	}
	return to
}
