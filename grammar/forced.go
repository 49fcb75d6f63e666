package grammar

import "bytes"

// maxForced is up to how many bytes a text without alternatives is looked for at once.
const maxForced = 512

// forced is what must follow a state.
type forced struct{ tokens []int32 }

// Forced is tokens that can be taken without asking the model, since the grammar leaves no other text: such as the name of a
// required property. Empty where there is a choice. remaining is as in Mask.
//
// One text can be cut into tokens in several ways. Forced cuts it as the tokenizer does by itself, as the model has seen it in
// training, or where that is not known into the longest tokens. A token at the end that could be the beginning of a longer one
// which goes on past what is forced is left to the model.
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
	// The tokenizer's cut is not always the one of the fewest tokens: near the end only as much of it as fits.
	at := m.s
	for i, id := range tokens {
		at = a.after(at, a.v.tokens[id])
		if left := int64(remaining - i - 1); left < 0 || !a.fits(at, left) {
			return tokens[:i]
		}
	}
	return tokens
}

// only is the byte that must follow, false where there is a choice.
func (a *automaton) only(s *state) (byte, bool) {
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
	if set != byteRange(byte(b), byte(b)) {
		return 0, false
	}
	return byte(b), true
}

func (a *automaton) forcedTokens(s *state) []int32 {
	var text []byte
	end := s
	for len(text) < maxForced {
		b, ok := a.only(end)
		if !ok {
			break
		}
		text = append(text, b)
		end = a.step(end, b)
	}
	if len(text) == 0 || end == a.dead {
		return nil
	}
	tokens := a.segment(text)
	at := 0
	for i, id := range tokens {
		if a.reachesPast(text[at:], end) {
			return tokens[:i]
		}
		at += len(a.v.tokens[id])
	}
	return tokens
}

// segment cuts a text into tokens: as the tokenizer does, else into the longest; nil if there are none for it.
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
		token, t := int32(noToken), int32(-1)
		for k := at; k < len(text); k++ {
			if t = a.v.all.child(t, text[k]); t < 0 {
				break
			}
			if n := &a.v.all.nodes[t]; n.token != noToken {
				token = a.v.all.first(n)
			}
		}
		if token == noToken {
			return ids
		}
		ids = append(ids, token)
		at += len(a.v.tokens[token])
	}
	return ids
}

// reachesPast reports whether a token begins with text and goes on as the grammar allows from s, the state after text.
func (a *automaton) reachesPast(text []byte, s *state) bool {
	t := int32(-1)
	for _, b := range text {
		if t = a.v.all.child(t, b); t < 0 {
			return false
		}
	}
	m := &mask{bits: make([]uint32, Words(a.v.Size()))}
	a.walk(m, &a.v.all, t+1, a.v.all.nodes[t].skip, len(text), s)
	return m.any
}
