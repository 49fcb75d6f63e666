package grammar

import (
	"context"
	"sync"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/items"
)

// Grammar is a compiled grammar, safe for concurrent use.
type Grammar struct {
	program *program
	orders  [][]string // of the properties of a schema's objects
	leftOut []string   // see LeftOut
	spelled bool       // 1.0 is not the integer 1

	mu       sync.Mutex
	automata map[*Vocabulary]*automaton
}

// maxAutomata is the number of vocabularies for which a grammar keeps its automaton.
const maxAutomata = 4

func newGrammar(ctx context.Context, e *expr.Expr) (*Grammar, error) {
	p, err := compile(ctx, e)
	if err != nil {
		return nil, err
	}
	return &Grammar{program: p, automata: map[*Vocabulary]*automaton{}}, nil
}

func (g *Grammar) automaton(v *Vocabulary) *automaton {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.automata[v]
	if a == nil {
		if len(g.automata) >= maxAutomata {
			clear(g.automata)
		}
		a = newAutomaton(g.program, v)
		g.automata[v] = a
	}
	return a
}

// Matcher follows one text while it is generated. It is not safe for concurrent use.
type Matcher struct {
	a *automaton
	s *state

	// Of grammars with items that must differ, see unique.go.
	t    *items.Text
	plan []byte // completes the text, near the end of its budget; nil: not computed
}

// Matcher starts a text of at most budget tokens; budget < 0: unlimited. End-of-sequence tokens do not count. The
// errors are ErrBudget, ErrVocabulary and ErrLimit.
func (g *Grammar) Matcher(v *Vocabulary, budget int) (*Matcher, error) {
	a := g.automaton(v)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	m := &Matcher{a: a, s: a.start()}
	if m.s.tokens >= infinite {
		if a.v.singles == expr.ByteRange(0, 255) {
			return nil, expr.Errorf(ErrLimit, "its shortest text is too long")
		}
		return nil, expr.Errorf(ErrVocabulary, "single-byte tokens that every text needs are missing")
	}
	if budget >= 0 && !a.fits(m.s, int64(budget)) {
		return nil, expr.Errorf(ErrBudget, "the shortest text needs %d tokens, the limit is %d", a.jointTokens(m.s), budget)
	}
	if a.p.unique != nil && budget >= 0 && m.s.tokens >= int64(budget)-a.reserve() {
		if least := m.fewestUnique(); least > int64(budget) {
			return nil, expr.Errorf(ErrBudget, "a short text needs %d tokens, the limit is %d", least, budget)
		}
	}
	return m, nil
}

// Mask writes the set of tokens that may come next to dst, which has [Words] of the vocabulary's size elements. After
// each of them the text can be completed within remaining tokens, including that token; remaining < 0: unlimited. It
// reports whether the set is non-empty. If it is empty, the text is complete, or the caller has already exceeded the
// budget. End-of-sequence tokens are never in the set.
func (m *Matcher) Mask(dst []uint32, remaining int) bool {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	m.s = a.current(m.s)
	if a.p.unique != nil {
		return m.guardedMask(dst, remaining)
	}
	full := a.maskOf(m.s)
	if remaining < 0 || full.most <= int64(remaining)-1 {
		copy(dst, full.bits)
		return full.any
	}
	clear(dst)
	if any := a.within(dst, m.s, int64(remaining)); any || !a.p.lexes || m.s.accept {
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
	if a.p.unique == nil {
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
	if a.p.unique != nil {
		m.s = a.current(m.s)
		return int(m.fewestUnique())
	}
	if m.s.cost <= jointBytes {
		m.s = a.current(m.s)
		return int(a.jointTokens(m.s))
	}
	return int(m.s.tokens)
}
