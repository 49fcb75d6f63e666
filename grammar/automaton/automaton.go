// Package automaton runs a program over the tokens of a vocabulary: which of them may come next in a text.
//
// Contract: an automaton is safe for concurrent use; a [Matcher] belongs to one goroutine. Limits bound its memory and
// the time for a mask.
//
// The pushdown automaton is determinized lazily: a state is a set of places in the program, each with its return stack.
// Equal stacks are one value. Most of a stack does not influence the next token, so masks are first computed for
// truncated stacks and shared; tokens that such a mask cannot decide are walked again with the full stack.
package automaton

import (
	"sync"

	"github.com/ingotml/ingot/grammar/places"
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/vocabulary"
	"github.com/ingotml/ingot/internal/limits"
)

// Limits of an automaton.
const (
	MaxPlaces   = 512     // places of a state; beyond it, those closest to the end are kept
	maxExplored = 1 << 14 // steps without a byte between two states
	maxBytes    = limits.GrammarCache
	// maxWork bounds the places visited for one mask, about 0.1 s. Beyond it the mask stays incomplete, but contains the
	// shortest path. Only grammars in which almost every token leads to hundreds of new places reach it.
	maxWork = 1 << 19
)

// Automaton is the lazily built automaton of a grammar over a vocabulary. Its mutex holds while a method computes.
type Automaton struct {
	mu sync.Mutex
	p  *program.Program
	v  *vocabulary.Vocabulary
	byteClasses
	costs      []int64             // by node: fewest bytes to the end of its rule, using bytes that are tokens
	tokens     []int64             // by node: fewest tokens for them if none crosses a call or repetition; see fewest
	best       []int32             // by node: the byte or alternative on the shortest path
	tokenSets  []vocabulary.Tokens // of the program, in this vocabulary
	err        error               // the vocabulary lacks a token that the grammar names
	whole      bool                // single-byte tokens suffice to complete every live node
	bottom     *frame              // the empty stack: the end of the text
	hidden     *frame              // stands for a truncated stack
	dead       *state
	generation uint32
	frameIDs   uint32
	frames     map[frameKey]*frame
	firstID    uint32   // of frames
	byID       []*frame // bottom, hidden, and frames from firstID on
	states     stateTable
	fronts     map[string]*front
	bytes      int // estimate for states and masks
	work       int // places visited for the current mask
	advances   int // steps of fronts for the current mask
	mark       uint64

	stack  []place // scratch of closure
	seen   places.Set
	key    []byte
	keys   []uint64
	places []place

	// Of the current closure, see longest.
	inText, skipping bool
	lazy             []place

	// Of the current closure, see unique.go.
	repeats bool // the last item repeats one before it
	opens   bool // it begins an array whose items are compared
}

// Size returns an estimate of the bytes of its cache, and the number of places of its largest state.
func (a *Automaton) Size() (bytes, places int) {
	for _, slot := range a.states.slots {
		if slot.s != nil {
			places = max(places, len(slot.s.places))
		}
	}
	return a.bytes, places
}
