package grammar

import (
	"context"
	"slices"
	"sync"

	"github.com/ingotml/ingot/grammar/automaton"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/program"
)

// Grammar is a compiled grammar, safe for concurrent use.
type Grammar struct {
	program *program.Program
	orders  [][]string // of the properties of a schema's objects
	leftOut []string   // see LeftOut
	spelled bool       // 1.0 is not the integer 1

	mu       sync.Mutex
	automata map[*Vocabulary]*automaton.Automaton
}

// maxAutomata is the number of vocabularies for which a grammar keeps its automaton.
const maxAutomata = 4

func newGrammar(ctx context.Context, e *expr.Expr) (*Grammar, error) {
	p, err := program.Compile(ctx, e)
	if err != nil {
		return nil, err
	}
	return &Grammar{program: p, automata: map[*Vocabulary]*automaton.Automaton{}}, nil
}

func (g *Grammar) automaton(v *Vocabulary) *automaton.Automaton {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.automata[v]
	if a == nil {
		if len(g.automata) >= maxAutomata {
			clear(g.automata)
		}
		a = automaton.New(g.program, v)
		g.automata[v] = a
	}
	return a
}

// Matcher follows one text while it is generated. It is not safe for concurrent use.
type Matcher = automaton.Matcher

// Matcher starts a text of at most budget tokens; budget < 0: unlimited. End-of-sequence tokens do not count. The
// errors are ErrBudget, ErrVocabulary and ErrLimit.
func (g *Grammar) Matcher(v *Vocabulary, budget int) (*Matcher, error) {
	return g.automaton(v).Matcher(budget)
}

// LeftOut returns what SchemaOptions.BestEffort left out, each with its location; nil if the grammar holds the schema
// exactly.
func (g *Grammar) LeftOut() []string { return slices.Clone(g.leftOut) }
