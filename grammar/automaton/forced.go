package automaton

import (
	"bytes"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// maxForced bounds the bytes of forced text that one call looks for.
const maxForced = 512

// forcedByte returns the byte that must follow, or false if there is a choice.
func (a *Automaton) forcedByte(s *state) (byte, bool) {
	if s.accept || len(s.places) == 0 {
		return 0, false
	}
	set := a.p.Sets[a.p.Nodes[s.places[0].node].Set]
	for _, p := range s.places[1:] {
		if a.p.Sets[a.p.Nodes[p.node].Set] != set {
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
func (a *Automaton) forcedTokens(s *state) (ids []int32) {
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
func (a *Automaton) forcedText(s *state) (text []byte, end *state) {
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
func (a *Automaton) forcedSplit(text []byte, end *state) (tokens []int32, whole bool) {
	if end == a.dead {
		return nil, false
	}
	tokens = a.segment(text)
	at := 0
	for i, id := range tokens {
		if a.reachesPast(text[at:], end) {
			return tokens[:i], false
		}
		at += len(a.v.Bytes(id))
	}
	return tokens, at == len(text)
}

// segment splits text into tokens: with the tokenizer, or greedily into the longest tokens. It returns the tokens so
// far where no token matches.
func (a *Automaton) segment(text []byte) []int32 {
	if a.v.Encode != nil {
		if ids, err := a.v.Encode(string(text)); err == nil {
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
			if t = a.v.All.Child(t, text[k]); t < 0 {
				break
			}
			if n := &a.v.All.Nodes[t]; n.Token != trie.None {
				token = a.v.All.First(n)
			}
		}
		if token == trie.None {
			return ids
		}
		ids = append(ids, token)
		at += len(a.v.Bytes(token))
	}
	return ids
}

// reachesPast reports whether a token begins with text and continues as the grammar allows from s, the state after
// text.
func (a *Automaton) reachesPast(text []byte, s *state) bool {
	t := int32(-1)
	for _, b := range text {
		if t = a.v.All.Child(t, b); t < 0 {
			return false
		}
	}
	m := &mask{bits: make([]uint32, vocabulary.Words(a.v.Size()))}
	var path [vocabulary.LongestToken + 1]*state
	path[len(text)] = s
	a.walk(m, &a.v.All, t+1, a.v.All.Nodes[t].Skip, &path)
	return m.any
}
