package grammar

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Limits of an automaton.
const (
	maxPlaces   = 512      // places of a state; beyond it, those closest to the end are kept
	maxExplored = 1 << 14  // steps without a byte between two states
	maxBytes    = 32 << 20 // bytes of states and masks before the cache is reset
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

	looping, notLooping uint64 // kinds of bytes whose bytes all lead to this state again, or not all; see loops
}

// automaton is the lazily built automaton of a grammar over a vocabulary.
type automaton struct {
	mu         sync.Mutex
	p          *program
	v          *Vocabulary
	classOf    [256]uint8
	classes    int
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
	states     map[string]*state
	bytes      int // estimate for states and masks
	work       int // places visited for the current mask

	stack  []place // scratch of closure
	seen   map[place]struct{}
	key    []byte
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
	a := &automaton{p: p, v: v, dead: &state{cost: infinite, tokens: infinite}, seen: map[place]struct{}{}}
	a.bottom, a.hidden = &frame{id: 0}, &frame{id: 1}
	a.frameIDs = 2
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
	a.states = map[string]*state{}
	a.bytes = 0
}

// current returns s as a state of the current cache.
func (a *automaton) current(s *state) *state {
	a.work = 0
	if a.bytes > maxBytes {
		a.restart()
	}
	if s.generation == a.generation {
		return s
	}
	return a.intern(append(a.places[:0], s.places...), s.accept, s.unknown)
}

// findClasses computes byte classes: bytes that no set of the program distinguishes share a class.
func (a *automaton) findClasses() {
	a.classes = 1
	for _, s := range a.p.sets {
		moved := map[uint8]uint8{}
		var outside [256]bool // classes that have bytes outside of s
		for b := range 256 {
			if !s.Has(byte(b)) {
				outside[a.classOf[b]] = true
			}
		}
		for b := range 256 {
			old := a.classOf[b]
			if !s.Has(byte(b)) || !outside[old] {
				continue
			}
			split, ok := moved[old]
			if !ok {
				split = uint8(a.classes)
				a.classes++
				moved[old] = split
			}
			a.classOf[b] = split
		}
	}
}

func (a *automaton) start() *state {
	a.places = a.places[:0]
	a.inText = false
	defer func() { a.inText = true }()
	return a.close([]place{{a.p.start, a.bottom}})
}

// expand appends to a.stack the successors of a place that consumes nothing. It reports whether the text may end here,
// and whether the truncated part of the stack decides.
func (a *automaton) expand(at place) (accept, unknown bool) {
	n := &a.p.nodes[at.node]
	f := at.frame
	switch n.op {
	case nodeAlt:
		for i := len(n.alts) - 1; i >= 0; i-- {
			a.stack = append(a.stack, place{n.alts[i], f})
		}
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
	if len(a.seen) > 256 { // clear takes time proportional to the map's largest size
		a.seen = map[place]struct{}{}
	}
	clear(a.seen)
	a.stack = append(a.stack[:0], seeds...)
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
			if _, ok := a.seen[at]; ok {
				continue
			}
			a.seen[at] = struct{}{}
		}
		if a.p.nodes[at.node].takes() {
			found = append(found, at)
			continue
		}
		if explored++; explored > maxExplored {
			for _, s := range seeds {
				found = a.shortest(found, s)
			}
			break
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
		return place{n.alts[a.best[at.node]], f}, true
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

// intern returns the unique state of these places. It sorts places.
func (a *automaton) intern(places []place, accept, unknown bool) *state {
	if len(places) == 0 && !accept && !unknown {
		return a.dead
	}
	if len(places) > 1 {
		if len(places) > maxPlaces {
			slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(a.costOf(x), a.costOf(y)) })
			places = places[:maxPlaces]
		}
		slices.SortFunc(places, func(x, y place) int {
			return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.frame.id, y.frame.id))
		})
		places = slices.Compact(places)
	}
	key := a.key[:0]
	flags := byte(0)
	if accept {
		flags |= 1
	}
	if unknown {
		flags |= 2
	}
	key = append(key, flags)
	for _, p := range places {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.node))
		key = binary.LittleEndian.AppendUint32(key, p.frame.id)
	}
	a.key = key
	if s, ok := a.states[string(key)]; ok {
		return s
	}
	s := &state{places: slices.Clone(places), accept: accept, unknown: unknown, generation: a.generation, cost: infinite,
		tokens: infinite}
	if accept || unknown {
		s.cost, s.tokens = 0, 0
	}
	for _, p := range places {
		s.cost = min(s.cost, a.costOf(p))
		s.tokens = min(s.tokens, sum(a.fewest(p.node), p.frame.tokens))
		s.rounded = s.rounded || p.frame.rounded
	}
	a.states[string(key)] = s
	a.bytes += 250 + 24*len(places)
	return s
}

func (a *automaton) costOf(p place) int64 { return sum(a.costs[p.node], p.frame.cost) }

// step returns the state after b, dead if the grammar does not allow it.
func (a *automaton) step(s *state, b byte) *state {
	k := a.classOf[b]
	if s.next == nil {
		if s == a.dead {
			return s
		}
		s.next = make([]*state, a.classes)
		a.bytes += 8 * a.classes
	}
	if to := s.next[k]; to != nil {
		return to
	}
	to := a.follows(s, b)
	s.next[k] = to
	return to
}

// follows computes the state after b.
func (a *automaton) follows(s *state, b byte) *state {
	var room [8]place
	seeds := room[:0]
	for _, p := range s.places {
		if n := &a.p.nodes[p.node]; a.p.sets[n.set].Has(b) {
			seeds = append(seeds, place{n.next, p.frame})
		}
	}
	if a.p.lexes {
		seeds = a.longest(s, b, seeds)
	}
	if len(seeds) == 0 {
		return a.dead
	}
	return a.close(seeds)
}
