package grammar

import (
	"math"
	"slices"
	"sync"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/places"
	"github.com/ingotml/ingot/internal/limits"
)

// Limits of an automaton.
const (
	maxPlaces   = 512     // places of a state; beyond it, those closest to the end are kept
	maxExplored = 1 << 14 // steps without a byte between two states
	maxBytes    = limits.GrammarCache
	// maxWork bounds the places visited for one mask, about 0.1 s. Beyond it the mask stays incomplete, but contains the
	// shortest path. Only grammars in which almost every token leads to hundreds of new places reach it.
	maxWork = 1 << 19
)

// place is a configuration of the pushdown automaton: a node of the program and the stack.
type place struct {
	node  int32
	frame *frame
}

// state is a set of places after the same bytes: those that consume a byte or a token
// next, and whether the text may end.
type state struct {
	places         []place
	accept         bool
	unknown        bool // the truncated part of the stack decides
	rounded        bool // some counts are approximate
	simple         bool // neither, and the text can be completed
	plainNextKnown bool // plainNext is computed
	generation     uint32
	next           []*state // by byte class; nil: not computed yet
	cost           int64    // fewest bytes to the end of the text
	tokens         int64    // upper bound of the fewest tokens
	joint          int64    // a tighter bound, see jointTokens; 0: not computed yet
	mask           *mask
	busy           bool // the mask is being computed
	forced         *forced

	plainNext *state // the state after any plain character

	totalMost         int64 // see isTotal
	total, totalKnown bool

	beyond      *state // the state after any character of several bytes
	beyondKnown bool   // beyond is computed

	unique *uniqueState // see unique.go

	id    uint32 // of the generation
	mark  uint64 // the last set that the state was put into
	front *front // of this state alone
}

// automaton is the lazily built automaton of a grammar over a vocabulary.
type automaton struct {
	mu sync.Mutex
	p  *program
	v  *Vocabulary
	byteClasses
	costs      []int64    // by node: fewest bytes to the end of its rule, using bytes that are tokens
	tokens     []int64    // by node: fewest tokens for these bytes if none crosses a call or repetition; see fewest
	best       []int32    // by node: the byte or alternative on the shortest path
	tokenSets  []tokenSet // of the program, in this vocabulary
	err        error      // the vocabulary lacks a token that the grammar names
	whole      bool       // single-byte tokens suffice to complete every live node
	bottom     *frame     // the empty stack: the end of the text
	hidden     *frame     // stands for a truncated stack
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

	// Of the current closure, see lexemes.go.
	inText, skipping bool
	lazy             []place

	// Of the current closure, see unique.go.
	repeats bool // the last item repeats one before it
	opens   bool // it begins an array whose items are compared
}

const infinite = math.MaxInt64 / 4

func newAutomaton(p *program, v *Vocabulary) *automaton {
	a := &automaton{p: p, v: v, dead: &state{cost: infinite, tokens: infinite}}
	a.frameIDs = 2
	a.bottom, a.hidden = &frame{id: 0}, &frame{id: 1}
	a.findClasses()
	if a.err = a.resolveTokens(); a.err == nil {
		a.findCosts()
	}
	a.restart()
	return a
}

// restart drops all cached states. Those that matchers hold remain valid; current re-interns them.
func (a *automaton) restart() {
	a.generation++
	a.frames = map[frameKey]*frame{}
	a.byID, a.firstID = []*frame{a.bottom, a.hidden}, a.frameIDs
	a.states, a.fronts = stateTable{}, map[string]*front{}
	a.bytes = 0
}

// current returns s as a state of the current cache.
func (a *automaton) current(s *state) *state {
	a.work, a.advances = 0, 0
	if a.bytes > maxBytes {
		a.restart()
	}
	if s.generation == a.generation {
		return s
	}
	return a.intern(append(a.places[:0], s.places...), s.accept, s.unknown)
}

func (a *automaton) start() *state {
	a.places = a.places[:0]
	a.inText = false
	defer func() { a.inText = true }()
	return a.close([]place{{a.p.start, a.bottom}})
}

// expand appends to a.stack the successors of a place that consumes nothing and has no alternatives. It reports whether
// the text may end here, and whether the truncated part of the stack decides.
func (a *automaton) expand(at place) (accept, unknown bool) {
	n := &a.p.nodes[at.node]
	f := at.frame
	switch n.op {
	case nodeCall:
		if n.next != 0 { // otherwise a tail call: no frame
			f = a.push(f, n.next, n.min, n.max, false, false)
			a.opens = a.opens || n.max == markArray
		}
		a.stack = append(a.stack, place{n.arg, f})
	case nodeRepeat:
		if n.min == 0 {
			a.stack = append(a.stack, place{n.next, f})
		}
		a.stack = append(a.stack, place{n.arg, a.push(f, at.node, max(n.min-1, 0), max(n.max-1, -1), true, false)})
	case nodeLazy:
		a.lazy = append(a.lazy, place{n.next, f})
	case nodeSkip:
		a.stack = append(a.stack, place{n.next, f})
		if a.inText {
			a.skipping = true
			a.stack = append(a.stack, place{n.arg, f})
		}
	case nodeDistinct:
		if !a.repeats {
			a.stack = append(a.stack, place{n.next, f})
		}
	case nodeEnd:
		switch {
		case f == a.bottom:
			return true, false
		case f == a.hidden:
			return false, true
		case !f.repeat:
			a.stack = append(a.stack, place{f.node, f.up})
		default:
			r := &a.p.nodes[f.node]
			if f.min == 0 {
				a.stack = append(a.stack, place{r.next, f.up})
			}
			if f.max != 0 {
				a.stack = append(a.stack, place{r.arg, a.push(f.up, f.node, max(f.min-1, 0), max(f.max-1, -1), true, f.rounded)})
			}
		}
	}
	return false, false
}

// close returns the state of all places that are reachable from seeds without consuming a byte.
func (a *automaton) close(seeds []place) *state {
	a.seen.Clear()
	a.stack = append(a.stack[:0], seeds...)
	slices.Reverse(a.stack) // their frames in order: then the places nearly are
	a.lazy, a.skipping, a.opens = a.lazy[:0], false, false
	found := a.places[:0]
	var accept, unknown bool
	explored := 0
	for len(a.stack) > 0 {
		a.work++
		at := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if !a.p.live[at.node] {
			continue
		}
		if explored > 0 || len(a.stack) > 0 { // a single place needs no visited set
			if !a.seen.Add(at.node, at.frame.id) {
				continue
			}
		}
		n := &a.p.nodes[at.node]
		if n.takes() {
			found = append(found, at)
			continue
		}
		if explored++; explored > maxExplored {
			for _, s := range seeds {
				found = a.shortest(found, s)
			}
			break
		}
		if n.op == nodeAlt { // most alternatives take a byte
			alts := a.p.altsOf(n)
			for _, alt := range alts[:n.max] {
				found = append(found, place{alt, at.frame})
			}
			for _, alt := range slices.Backward(alts[n.max:]) {
				a.stack = append(a.stack, place{alt, at.frame})
			}
			a.work += int(n.max)
			continue
		}
		end, cut := a.expand(at)
		accept, unknown = accept || end, unknown || cut
	}
	a.places = found
	if a.p.lexes {
		if len(a.lazy) > 0 {
			return a.close(slices.Clone(a.lazy))
		}
		if accept && a.skipping && !a.trailing(seeds) {
			return a.close(append(slices.Clone(seeds), place{a.p.skips, a.bottom}))
		}
	}
	opens := a.opens
	s := a.intern(found, accept, unknown)
	if opens && s != a.dead {
		s.uniqueState().opens = true
	}
	return s
}

// shortest appends the place that consumes the next byte or token on the shortest path from at, if there is one.
func (a *automaton) shortest(found []place, at place) []place {
	for !a.p.nodes[at.node].takes() {
		next, ok := a.follow(at)
		if !ok {
			return found
		}
		at = next
	}
	return append(found, at)
}

// follow returns the next place on the shortest path from a place that consumes nothing, or false at the end of the
// text or of the truncated stack.
func (a *automaton) follow(at place) (place, bool) {
	n := &a.p.nodes[at.node]
	f := at.frame
	switch n.op {
	case nodeAlt:
		return place{a.p.altsOf(n)[a.best[at.node]], f}, true
	case nodeDistinct:
		return place{n.next, f}, !a.repeats
	case nodeLazy, nodeSkip:
		return place{n.next, f}, true
	case nodeCall:
		if n.next != 0 {
			f = a.push(f, n.next, n.min, n.max, false, false)
		}
		return place{n.arg, f}, true
	case nodeRepeat:
		if n.min == 0 {
			return place{n.next, f}, true
		}
		return place{n.arg, a.push(f, at.node, n.min-1, max(n.max-1, -1), true, false)}, true
	}
	switch {
	case f == a.bottom || f == a.hidden:
		return at, false
	case !f.repeat:
		return place{f.node, f.up}, true
	case f.min == 0:
		return place{a.p.nodes[f.node].next, f.up}, true
	}
	return place{a.p.nodes[f.node].arg, a.push(f.up, f.node, f.min-1, max(f.max-1, -1), true, f.rounded)}, true
}

// step returns the state after b, dead if the grammar does not allow it.
func (a *automaton) step(s *state, b byte) *state {
	if k := a.classOf[b]; int(k) < len(s.next) {
		if to := s.next[k]; to != nil {
			return to
		}
	}
	return a.findStep(s, b)
}

// findStep is step for a class of bytes that is not known yet.
func (a *automaton) findStep(s *state, b byte) *state {
	if s == a.dead {
		return s
	}
	if s.next == nil {
		s.next = make([]*state, a.classes)
		a.bytes += 8 * a.classes
	}
	to, same := a.follows(s, b)
	a.leadTo(s, same, to)
	return to
}

// follows computes the state after b, and the classes of all bytes that lead there for the same reason.
func (a *automaton) follows(s *state, b byte) (to *state, same expr.ByteSet) {
	k := a.classOf[b]
	var room [8]place
	seeds := room[:0]
	same = everyClass // the classes that the same places take
	var others expr.ByteSet
	for _, p := range s.places {
		n := &a.p.nodes[p.node]
		if taken := a.takes[n.set]; taken.Has(k) {
			next := n.next
			if n.op == nodeSwitch {
				next, taken = a.chosen(n, k)
			}
			seeds = append(seeds, place{next, p.frame})
			same = same.And(taken)
		} else {
			others = others.Or(taken)
		}
	}
	same = same.Without(others)
	if a.p.lexes {
		seeds = a.longest(s, b, seeds)
	}
	if len(seeds) == 0 {
		return a.dead, same
	}
	return a.close(seeds), same
}

// chosen returns where a nodeSwitch continues after a class of bytes that it takes, and all classes that lead there.
func (a *automaton) chosen(n *node, class uint8) (next int32, classes expr.ByteSet) {
	alts := a.p.altsOf(n)
	for k, set := range a.p.casesOf(n) {
		if classes = a.takes[set]; classes.Has(class) {
			return alts[k], classes
		}
	}
	panic("a class of a nodeSwitch without an alternative")
}
