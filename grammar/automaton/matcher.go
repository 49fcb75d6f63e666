package automaton

import (
	"errors"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

var (
	// ErrBudget: no text of the grammar fits into the number of tokens.
	ErrBudget = errors.New("too few tokens for any text of the grammar")
	// ErrToken: the grammar does not allow the token here.
	ErrToken = errors.New("token not allowed by the grammar")
)

// Matcher follows one text while it is generated. It is not safe for concurrent use.
type Matcher struct{ position }

// Matcher starts a text of at most budget tokens; budget < 0: unlimited. End-of-sequence tokens do not count. The
// errors are ErrBudget, vocabulary.ErrVocabulary and expr.ErrLimit.
func (a *Automaton) Matcher(budget int) (*Matcher, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	m := &Matcher{position{a: a, s: a.start()}}
	if m.s.tokens >= infinite {
		if a.v.Singles == expr.ByteRange(0, 255) {
			return nil, expr.Errorf(expr.ErrLimit, "its shortest text is too long")
		}
		return nil, expr.Errorf(vocabulary.ErrVocabulary, "single-byte tokens that every text needs are missing")
	}
	if budget >= 0 && !a.fits(m.s, int64(budget)) {
		return nil, expr.Errorf(ErrBudget, "the shortest text needs %d tokens, the limit is %d", a.jointTokens(m.s), budget)
	}
	if a.p.Unique != nil && budget >= 0 && m.s.tokens >= int64(budget)-a.reserve() {
		if least := m.fewestUnique(); least > int64(budget) {
			return nil, expr.Errorf(ErrBudget, "a short text needs %d tokens, the limit is %d", least, budget)
		}
	}
	return m, nil
}

// Mask writes the set of tokens that may come next to dst, which has [vocabulary.Words] of the vocabulary's size
// elements. After each of them the text can be completed within remaining tokens, including that token; remaining < 0:
// unlimited. It reports whether the set is non-empty. If it is empty, the text is complete, or the caller has already
// exceeded the budget. End-of-sequence tokens are never in the set.
func (m *Matcher) Mask(dst []uint32, remaining int) bool {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	m.s = a.current(m.s)
	if a.p.Unique != nil {
		return m.guardedMask(dst, remaining)
	}
	full := a.maskOf(m.s)
	if remaining < 0 || full.most <= int64(remaining)-1 {
		copy(dst, full.bits)
		return full.any
	}
	clear(dst)
	if any := a.within(dst, m.s, int64(remaining)); any || !a.p.Lexes || m.s.accept {
		return any
	}
	// The shortest way ignores that the longest lexeme counts, so it may lead nowhere.
	copy(dst, full.bits)
	return full.any
}

// Accept appends a token. On an error, ErrToken, the text is unchanged.
func (m *Matcher) Accept(token int32) error {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	m.s = a.current(m.s)
	var next *state
	var text *items.Text
	if a.p.Unique == nil {
		next = a.afterToken(m.s, token)
	} else {
		next, text = a.textAfter(m.s, m.t, token)
	}
	if next.tokens >= infinite {
		return expr.Errorf(ErrToken, "token %d (%q)", token, a.v.Bytes(token))
	}
	if m.plan != nil {
		m.advance(token)
	}
	m.s, m.t = next, text
	return nil
}

// Clone returns an independent matcher at the same point of the text.
func (m *Matcher) Clone() *Matcher {
	c := *m
	return &c
}

// Done reports whether the text may end here.
func (m *Matcher) Done() bool { return m.s.accept }

// Fewest returns the number of tokens that suffice to complete the text, 0 if it may end here.
func (m *Matcher) Fewest() int {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.p.Unique != nil {
		m.s = a.current(m.s)
		return int(m.fewestUnique())
	}
	if m.s.cost <= jointBytes {
		m.s = a.current(m.s)
		return int(a.jointTokens(m.s))
	}
	return int(m.s.tokens)
}

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
	if a.p.Unique != nil {
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
