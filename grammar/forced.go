package grammar

import (
	"bytes"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// maxForced bounds the bytes of forced text that one call looks for.
const maxForced = 512

// forced is the text that must follow a state, as tokens.
type forced struct{ tokens []int32 }

// Forced returns tokens that need no sampling, because the grammar allows no other text: for example the name of a
// required property. It is empty if there is a choice. remaining is as in Mask.
//
// Several token sequences can spell the same text. Forced uses the tokenizer's own encoding, which the model knows from
// training, or the longest tokens if there is no encoder. It leaves out tokens at the end that could be the beginning
// of a longer token that extends past the forced text: the model chooses there.
func (m *Matcher) Forced(remaining int) []int32 {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	m.s = a.current(m.s)
	if m.s.forced == nil {
		m.s.forced = &forced{a.forcedTokens(m.s)}
	}
	tokens := m.s.forced.tokens
	if remaining < 0 {
		return tokens
	}
	// The tokenizer's encoding is not always the shortest: near the end of the budget, return only as much of it as fits.
	at := m.s
	reserve := int64(0)
	if a.p.unique != nil {
		reserve = a.reserve()
	}
	for i, id := range tokens {
		at = a.afterToken(at, id)
		if left := int64(remaining-i-1) - reserve; left < 0 || !a.fits(at, left) {
			return tokens[:i]
		}
	}
	return tokens
}

// forcedByte returns the byte that must follow, or false if there is a choice.
func (a *automaton) forcedByte(s *state) (byte, bool) {
	if s.accept || len(s.places) == 0 {
		return 0, false
	}
	set := a.p.sets[a.p.nodes[s.places[0].node].set]
	for _, p := range s.places[1:] {
		if a.p.sets[a.p.nodes[p.node].set] != set {
			return 0, false
		}
	}
	b := representative(set)
	if set != expr.ByteRange(byte(b), byte(b)) {
		return 0, false
	}
	return byte(b), true
}

// forcedTokens returns the tokens of forced text, and those that must follow by their names.
func (a *automaton) forcedTokens(s *state) (ids []int32) {
	for len(ids) < maxForced {
		id, ok := a.forcedToken(s)
		if !ok {
			text, end := a.forcedText(s)
			if id, ok = a.forcedToken(end); len(text) > 0 {
				tokens, whole := a.forcedSplit(text, end)
				ids = append(ids, tokens...)
				ok = ok && whole
			}
			s = end
		}
		if !ok {
			break
		}
		ids = append(ids, id)
		s = a.afterToken(s, id)
	}
	return ids
}

// forcedText returns the bytes that must follow, and the state after them.
func (a *automaton) forcedText(s *state) (text []byte, end *state) {
	end = s
	for len(text) < maxForced {
		b, ok := a.forcedByte(end)
		if !ok {
			break
		}
		text = append(text, b)
		end = a.step(end, b)
	}
	return text, end
}

// forcedSplit splits forced text into tokens, and reports whether they cover it: at its end, a longer token may be
// possible.
func (a *automaton) forcedSplit(text []byte, end *state) (tokens []int32, whole bool) {
	if end == a.dead {
		return nil, false
	}
	tokens = a.segment(text)
	at := 0
	for i, id := range tokens {
		if a.reachesPast(text[at:], end) {
			return tokens[:i], false
		}
		at += len(a.v.tokens[id])
	}
	return tokens, at == len(text)
}

// segment splits text into tokens: with the tokenizer, or greedily into the longest tokens. It returns the tokens so
// far where no token matches.
func (a *automaton) segment(text []byte) []int32 {
	if a.v.encode != nil {
		if ids, err := a.v.encode(string(text)); err == nil {
			var back []byte
			for _, id := range ids {
				back = append(back, a.v.Bytes(id)...)
			}
			if bytes.Equal(back, text) {
				return ids
			}
		}
	}
	var ids []int32
	for at := 0; at < len(text); {
		token, t := int32(trie.None), int32(-1)
		for k := at; k < len(text); k++ {
			if t = a.v.all.Child(t, text[k]); t < 0 {
				break
			}
			if n := &a.v.all.Nodes[t]; n.Token != trie.None {
				token = a.v.all.First(n)
			}
		}
		if token == trie.None {
			return ids
		}
		ids = append(ids, token)
		at += len(a.v.tokens[token])
	}
	return ids
}

// reachesPast reports whether a token begins with text and continues as the grammar allows from s, the state after
// text.
func (a *automaton) reachesPast(text []byte, s *state) bool {
	t := int32(-1)
	for _, b := range text {
		if t = a.v.all.Child(t, b); t < 0 {
			return false
		}
	}
	m := &mask{bits: make([]uint32, Words(a.v.Size()))}
	var path [longestToken + 1]*state
	path[len(text)] = s
	a.walk(m, &a.v.all, t+1, a.v.all.Nodes[t].Skip, &path)
	return m.any
}
