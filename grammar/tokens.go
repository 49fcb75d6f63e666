package grammar

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// A grammar can name tokens, such as <think>: special ones have no bytes. A place that takes tokens is left between two
// tokens only, by Accept and not by bytes, so the walks through a vocabulary's bytes pass it by. What a token leads to
// is the union of what its bytes and its name lead to.

// tokenSet is a set of tokens of one vocabulary: those in spans, or all others that exist.
type tokenSet struct {
	spans []expr.IDSpan
	not   bool
}

// token returns the node of a token terminal.
func (c *compiler) token(t *expr.Tokens, next int32) int32 {
	key := fmt.Sprint(*t)
	id, ok := c.tokenIDs[key]
	if !ok {
		id = int32(len(c.tokens))
		c.tokenIDs[key] = id
		c.tokens = append(c.tokens, t)
	}
	return c.shared(node{op: nodeToken, set: c.setID(expr.ByteSet{}), arg: id, next: next})
}

// resolveTokens finds the tokens of the program in the vocabulary.
func (a *automaton) resolveTokens() error {
	a.tokenSets = make([]tokenSet, len(a.p.tokens))
	for i, t := range a.p.tokens {
		set, err := a.v.resolve(t)
		if err != nil {
			return err
		}
		a.tokenSets[i] = set
	}
	return nil
}

func (v *Vocabulary) resolve(t *expr.Tokens) (set tokenSet, err error) {
	set.not = t.Not
	for _, name := range t.Names {
		id, ok := v.byName(name)
		if !ok {
			return set, expr.Errorf(ErrVocabulary, "%s is not one token of the model; write its text as a literal",
				expr.Clip(name))
		}
		set.spans = append(set.spans, expr.IDSpan{First: id, Last: id})
	}
	for _, s := range t.IDs {
		if int(s.Last) >= v.Size() {
			return set, expr.Errorf(ErrVocabulary, "the token id %d; the model has %d", s.Last, v.Size())
		}
		set.spans = append(set.spans, s)
	}
	if !set.not {
		for _, id := range v.ends {
			if set.listed(id) && len(set.spans) == 1 && set.spans[0].First == set.spans[0].Last {
				return set, expr.Errorf(ErrVocabulary, "token %d ends the model's text: leave it out, a text ends where "+
					"the grammar does", id)
			}
		}
	}
	if v.firstOf(set) == trie.None {
		return set, expr.Errorf(ErrVocabulary, "a token terminal matches no token of the model")
	}
	return set, nil
}

func (v *Vocabulary) byName(name string) (int32, bool) {
	if v.id != nil {
		if id, ok := v.id(name); ok && id >= 0 && int(id) < v.Size() {
			return id, true
		}
	}
	t := int32(-1)
	for i := range len(name) {
		if t = v.all.Child(t, name[i]); t < 0 {
			return 0, false
		}
	}
	n := &v.all.Nodes[t]
	return v.all.First(n), n.Token != trie.None
}

// exists reports whether a token can be generated within a text.
func (v *Vocabulary) exists(id int32) bool {
	return id >= 0 && int(id) < v.Size() && v.usable[id>>5]>>(id&31)&1 != 0
}

func (s tokenSet) listed(id int32) bool {
	return slices.ContainsFunc(s.spans, func(span expr.IDSpan) bool { return span.First <= id && id <= span.Last })
}

func (s tokenSet) has(v *Vocabulary, id int32) bool { return s.listed(id) != s.not && v.exists(id) }

// firstOf returns a token of a set, or trie.None.
func (v *Vocabulary) firstOf(s tokenSet) int32 {
	for id := range int32(v.Size()) {
		if s.has(v, id) {
			return id
		}
	}
	return trie.None
}

// add marks the tokens of a set.
func (v *Vocabulary) add(bits []uint32, s tokenSet) {
	if !s.not {
		for _, span := range s.spans {
			for id := span.First; id <= span.Last; id++ {
				if v.exists(id) {
					bits[id>>5] |= 1 << (id & 31)
				}
			}
		}
		return
	}
	others := slices.Clone(v.usable)
	for _, span := range s.spans {
		for id := span.First; id <= span.Last; id++ {
			others[id>>5] &^= 1 << (id & 31)
		}
	}
	trie.Or(bits, others)
}

// after returns the state after all bytes of b.
func (a *automaton) after(s *state, b []byte) *state {
	for _, c := range b {
		if s = a.step(s, c); s == a.dead {
			break
		}
	}
	return s
}

// afterToken returns the state after a token, dead if the grammar does not allow it.
func (a *automaton) afterToken(s *state, token int32) *state {
	next := a.dead
	if b := a.v.Bytes(token); len(b) > 0 {
		next = a.after(s, b)
	}
	return a.merge(next, a.afterNamed(s, token))
}

// afterNamed returns the state after a token that s names, dead if it does not.
func (a *automaton) afterNamed(s *state, token int32) *state {
	var seeds []place
	for _, p := range s.places {
		if n := &a.p.nodes[p.node]; n.op == nodeToken && a.tokenSets[n.arg].has(a.v, token) {
			seeds = append(seeds, place{n.next, p.frame})
		}
	}
	if len(seeds) == 0 {
		return a.dead
	}
	return a.close(seeds)
}

// merge returns the state of the places of both.
func (a *automaton) merge(next, named *state) *state {
	switch {
	case named == a.dead:
		return next
	case next == a.dead:
		return named
	}
	places := append(slices.Clone(next.places), named.places...)
	return a.intern(places, next.accept || named.accept, next.unknown || named.unknown)
}

// namesTokens reports whether tokens may follow s by their names.
func (a *automaton) namesTokens(s *state) bool {
	return len(a.tokenSets) > 0 &&
		slices.ContainsFunc(s.places, func(p place) bool { return a.p.nodes[p.node].op == nodeToken })
}

// takeNamed calls take with each set of tokens that the places of s name, and the state after them. If take accepts
// it, it marks them in bits.
func (a *automaton) takeNamed(bits []uint32, s *state, take func(*state) bool) {
	if len(a.tokenSets) == 0 {
		return
	}
	for _, p := range s.places {
		n := &a.p.nodes[p.node]
		if n.op == nodeToken && take(a.close([]place{{n.next, p.frame}})) {
			a.v.add(bits, a.tokenSets[n.arg])
		}
	}
}

// forcedToken returns the token that must follow by its name, or false if there is a choice.
func (a *automaton) forcedToken(s *state) (int32, bool) {
	if s.accept || len(s.places) != 1 || a.p.nodes[s.places[0].node].op != nodeToken {
		return 0, false
	}
	set := a.tokenSets[a.p.nodes[s.places[0].node].arg]
	if set.not || len(set.spans) != 1 || set.spans[0].First != set.spans[0].Last {
		return 0, false
	}
	return set.spans[0].First, true
}
