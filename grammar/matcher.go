package grammar

import (
	"context"
	"sync"
)

// Grammar is a compiled grammar. It is safe for concurrent use.
type Grammar struct {
	program *program

	mu       sync.Mutex
	automata map[*Vocabulary]*automaton
}

// maxAutomata is for how many vocabularies a grammar keeps what it has learned.
const maxAutomata = 4

func newGrammar(ctx context.Context, e *expr) (*Grammar, error) {
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

// Matcher is one text that is being written under a grammar. One goroutine uses it at a time.
type Matcher struct {
	a *automaton
	s *state
}

// Matcher begins a text of at most budget tokens; < 0: of any number. What ends a text is not counted.
// Errors: ErrBudget, ErrVocabulary, ErrLimit.
func (g *Grammar) Matcher(v *Vocabulary, budget int) (*Matcher, error) {
	a := g.automaton(v)
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &Matcher{a: a, s: a.start()}
	if m.s.tokens >= infinite {
		if a.v.singles == byteRange(0, 255) {
			return nil, failure(ErrLimit, "its shortest text is beyond all bounds")
		}
		return nil, failure(ErrVocabulary, "it lacks tokens of single bytes that every text needs")
	}
	if budget >= 0 && !a.fits(m.s, int64(budget)) {
		return nil, failure(ErrBudget, "the shortest has %d, the limit is %d", a.jointTokens(m.s), budget)
	}
	return m, nil
}

// Mask writes to dst, which has [Words] of the vocabulary's size, which tokens may come next so that the text can be
// completed with remaining tokens, the next one included; remaining < 0: with any number. It reports whether there is one;
// if not, the text is complete (or the budget of a text that has none is at its end). Tokens that end a text are not in it.
func (m *Matcher) Mask(dst []uint32, remaining int) bool {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	m.s = a.current(m.s)
	full := a.maskOf(m.s)
	if remaining < 0 || full.most <= int64(remaining)-1 {
		copy(dst, full.bits)
		return full.any
	}
	clear(dst)
	return a.within(dst, m.s, int64(remaining))
}

// Accept takes the next token. An error, ErrToken, leaves the text as it was.
func (m *Matcher) Accept(token int32) error {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.v.Bytes(token)
	if len(b) == 0 {
		return failure(ErrToken, "token %d has no text", token)
	}
	m.s = a.current(m.s)
	next := a.after(m.s, b)
	if next.tokens >= infinite {
		return failure(ErrToken, "token %d (%q)", token, b)
	}
	m.s = next
	return nil
}

// Clone is a second matcher of the same text, which goes its own way.
func (m *Matcher) Clone() *Matcher {
	c := *m
	return &c
}

// Done reports whether the text may end here.
func (m *Matcher) Done() bool { return m.s.accept }

// Fewest is how many tokens suffice to complete the text, 0 when it may end here.
func (m *Matcher) Fewest() int {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.s.cost <= jointBytes {
		m.s = a.current(m.s)
		return int(a.jointTokens(m.s))
	}
	return int(m.s.tokens)
}
