package automaton

import (
	"slices"

	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// A grammar can name tokens, such as <think>: special ones have no bytes. A place that takes tokens is left between two
// tokens only, by Accept and not by bytes, so the walks through a vocabulary's bytes pass it by. What a token leads to
// is the union of what its bytes and its name lead to.

// resolveTokens finds the tokens of the program in the vocabulary.
func (a *Automaton) resolveTokens() error {
	a.tokenSets = make([]vocabulary.Tokens, len(a.p.Tokens))
	for i, t := range a.p.Tokens {
		set, err := a.v.Resolve(t)
		if err != nil {
			return err
		}
		a.tokenSets[i] = set
	}
	return nil
}

// afterToken returns the state after a token, dead if the grammar does not allow it.
func (a *Automaton) afterToken(s *state, token int32) *state {
	next := a.dead
	if b := a.v.Bytes(token); len(b) > 0 {
		next = a.after(s, b)
	}
	return a.merge(next, a.afterNamed(s, token))
}

// afterNamed returns the state after a token that s names, dead if it does not.
func (a *Automaton) afterNamed(s *state, token int32) *state {
	var seeds []place
	for _, p := range s.places {
		if n := &a.p.Nodes[p.node]; n.Op == program.Token && a.tokenSets[n.Arg].Has(a.v, token) {
			seeds = append(seeds, place{n.Next, p.frame})
		}
	}
	if len(seeds) == 0 {
		return a.dead
	}
	return a.close(seeds)
}

// merge returns the state of the places of both.
func (a *Automaton) merge(next, named *state) *state {
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
func (a *Automaton) namesTokens(s *state) bool {
	return len(a.tokenSets) > 0 &&
		slices.ContainsFunc(s.places, func(p place) bool { return a.p.Nodes[p.node].Op == program.Token })
}

// takeNamed calls take with each set of tokens that the places of s name, and the state after them. If take accepts
// it, it marks them in bits.
func (a *Automaton) takeNamed(bits []uint32, s *state, take func(*state) bool) {
	if len(a.tokenSets) == 0 {
		return
	}
	for _, p := range s.places {
		n := &a.p.Nodes[p.node]
		if n.Op == program.Token && take(a.close([]place{{n.Next, p.frame}})) {
			a.v.Mark(bits, a.tokenSets[n.Arg])
		}
	}
}

// forcedToken returns the token that must follow by its name, or false if there is a choice.
func (a *Automaton) forcedToken(s *state) (int32, bool) {
	if s.accept || len(s.places) != 1 || a.p.Nodes[s.places[0].node].Op != program.Token {
		return 0, false
	}
	set := a.tokenSets[a.p.Nodes[s.places[0].node].Arg]
	if set.Not || len(set.Spans) != 1 || set.Spans[0].First != set.Spans[0].Last {
		return 0, false
	}
	return set.Spans[0].First, true
}
