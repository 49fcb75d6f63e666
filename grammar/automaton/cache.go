package automaton

import (
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// New returns the automaton of a program over a vocabulary. Err says what the vocabulary lacks.
func New(p *program.Program, v *vocabulary.Vocabulary) *Automaton {
	a := &Automaton{p: p, v: v, byteClasses: classesOf(p.Sets), dead: &state{cost: infinite, tokens: infinite}}
	a.frameIDs = 2
	a.bottom, a.hidden = &frame{id: 0}, &frame{id: 1}
	if a.err = a.resolveTokens(); a.err == nil {
		a.findCosts()
	}
	a.restart()
	return a
}

// restart drops all cached states. Those that matchers hold remain valid; current re-interns them.
func (a *Automaton) restart() {
	a.generation++
	a.frames = map[frameKey]*frame{}
	a.byID, a.firstID = []*frame{a.bottom, a.hidden}, a.frameIDs
	a.states, a.fronts = stateTable{}, map[string]*front{}
	a.bytes = 0
}

// current returns s as a state of the current cache.
func (a *Automaton) current(s *state) *state {
	a.work, a.advances = 0, 0
	if a.bytes > maxBytes {
		a.restart()
	}
	if s.generation == a.generation {
		return s
	}
	return a.intern(append(a.places[:0], s.places...), s.accept, s.unknown)
}

// start returns the state before any byte.
func (a *Automaton) start() *state {
	a.places = a.places[:0]
	a.inText = false
	defer func() { a.inText = true }()
	return a.close([]place{{a.p.Start, a.bottom}})
}
