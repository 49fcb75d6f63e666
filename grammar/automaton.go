package grammar

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// The bounds of an automaton.
const (
	maxPlaces   = 512      // places of a state; of more, those nearest to their end are kept
	maxExplored = 1 << 14  // steps without a byte from one state to the next
	maxBytes    = 32 << 20 // of states and masks before the cache starts anew
	// maxWork is how many places are looked at for one mask, a tenth of a second. A mask that would take more is left as it
	// is, with the shortest way in it: of grammars in which almost every token leads to hundreds of places of its own.
	maxWork = 1 << 19
)

// frame is a stack: what follows when the rule or the repeated body that is running has ended, on top of another. Equal
// stacks are the same frame.
type frame struct {
	id       uint32
	node     int32 // of a call: where it returns to; of a repetition: its node
	min, max int32 // of a repetition: how often the body must and may run again after this time; max < 0: no end
	repeat   bool
	rounded  bool // a count here or below is not the true one, see cut
	up       *frame
	cost     int64 // fewest bytes from here to the end of the text
	tokens   int64 // and tokens, as a sum over parts
}

type frameKey struct {
	up       uint32
	node     int32
	min, max int32
	flags    uint8
}

// place is where in the program a text may be.
type place struct {
	node  int32
	frame *frame
}

// state is all places where a text may be: those that take a byte, and whether the text may end.
type state struct {
	places  []place
	accept  bool
	unknown bool // the part of the stack that is cut away decides
	rounded bool // counts in it are not the true ones
	looked  bool // plainNext is known
	age     uint32
	next    []*state // by class of byte; nil: not looked at yet
	cost    int64    // fewest bytes to the end of the text
	tokens  int64    // fewest tokens, an upper bound
	joint   int64    // a better bound once it was asked for, else 0
	mask    *mask
	forced  *forced

	plainNext *state // where every plain character leads
}

// automaton is a grammar with a vocabulary: its states as far as they were met.
type automaton struct {
	mu       sync.Mutex
	p        *program
	v        *Vocabulary
	classOf  [256]uint8
	classes  int
	costs    []int64 // by node: fewest bytes to the end of its rule with the bytes that are tokens
	tokens   []int64 // by node: fewest tokens for them, where parts meet at calls and repetitions
	best     []int32 // by node: the byte or the alternative that leads there
	whole    bool    // every place that is alive can be completed with single bytes
	bottom   *frame  // the end of the text
	hidden   *frame  // a stack that is cut away
	dead     *state
	age      uint32
	frameIDs uint32
	frames   map[frameKey]*frame
	states   map[string]*state
	bytes    int // of states and masks, about
	work     int // places looked at for this mask

	stack  []place // scratch of closure
	seen   map[place]struct{}
	key    []byte
	places []place
}

const infinite = math.MaxInt64 / 4

func newAutomaton(p *program, v *Vocabulary) *automaton {
	a := &automaton{p: p, v: v, dead: &state{cost: infinite, tokens: infinite}, seen: map[place]struct{}{}}
	a.bottom, a.hidden = &frame{id: 0}, &frame{id: 1}
	a.frameIDs = 2
	a.findClasses()
	a.findCosts()
	a.restart()
	return a
}

// restart forgets all states. Those that matchers hold stay what they are and are taken up again by current.
func (a *automaton) restart() {
	a.age++
	a.frames = map[frameKey]*frame{}
	a.states = map[string]*state{}
	a.bytes = 0
}

// current is s in the cache of today.
func (a *automaton) current(s *state) *state {
	a.work = 0
	if a.bytes > maxBytes {
		a.restart()
	}
	if s.age == a.age {
		return s
	}
	return a.intern(append(a.places[:0], s.places...), s.accept, s.unknown)
}

// findClasses puts bytes together that no set of the program tells apart.
func (a *automaton) findClasses() {
	a.classes = 1
	for _, s := range a.p.sets {
		moved := map[uint8]uint8{}
		var outside [256]bool // classes that have bytes outside of s
		for b := range 256 {
			if !s.has(byte(b)) {
				outside[a.classOf[b]] = true
			}
		}
		for b := range 256 {
			old := a.classOf[b]
			if !s.has(byte(b)) || !outside[old] {
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
	return a.close([]place{{a.p.start, a.bottom}})
}

// push is the stack f with a frame on top.
func (a *automaton) push(f *frame, node, least, most int32, repeat, rounded bool) *frame {
	rounded = rounded || f.rounded
	k := frameKey{up: f.id, node: node, min: least, max: most}
	if repeat {
		k.flags |= 1
	}
	if rounded {
		k.flags |= 2
	}
	if made, ok := a.frames[k]; ok {
		return made
	}
	n := &a.p.nodes[node]
	made := &frame{id: a.frameIDs, node: node, min: least, max: most, repeat: repeat, rounded: rounded, up: f, cost: f.cost, tokens: f.tokens}
	a.frameIDs++
	if repeat {
		made.cost = sum(made.cost, a.costs[n.next], times(int64(least), a.costs[n.arg]))
		made.tokens = sum(made.tokens, a.tokens[n.next], times(int64(least), a.tokens[n.arg]))
	} else {
		made.cost = sum(made.cost, a.costs[node])
		made.tokens = sum(made.tokens, a.tokens[node])
	}
	a.frames[k] = made
	a.bytes += 120
	return made
}

// sum and times stay at infinite.
func sum(parts ...int64) (total int64) {
	for _, p := range parts {
		if total += p; total >= infinite {
			return infinite
		}
	}
	return total
}

func times(n, each int64) int64 {
	if n == 0 {
		return 0
	}
	if each >= infinite/n {
		return infinite
	}
	return n * each
}

// expand appends to a.stack where a place that takes no byte goes on. It reports the end of the text and of what is known.
func (a *automaton) expand(at place) (accept, unknown bool) {
	n := &a.p.nodes[at.node]
	f := at.frame
	switch n.op {
	case nodeAlt:
		for i := len(n.alts) - 1; i >= 0; i-- {
			a.stack = append(a.stack, place{n.alts[i], f})
		}
	case nodeCall:
		if n.next != 0 { // else what follows the call is what follows the rule that calls
			f = a.push(f, n.next, 0, 0, false, false)
		}
		a.stack = append(a.stack, place{n.arg, f})
	case nodeRepeat:
		if n.min == 0 {
			a.stack = append(a.stack, place{n.next, f})
		}
		a.stack = append(a.stack, place{n.arg, a.push(f, at.node, max(n.min-1, 0), max(n.max-1, -1), true, false)})
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

// close is the state of all places that follow from seeds without a byte.
func (a *automaton) close(seeds []place) *state {
	if len(a.seen) > 256 { // clearing takes as long as the map once was
		a.seen = map[place]struct{}{}
	}
	clear(a.seen)
	a.stack = append(a.stack[:0], seeds...)
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
		if explored > 0 || len(a.stack) > 0 { // a single place needs no memory of where it was
			if _, ok := a.seen[at]; ok {
				continue
			}
			a.seen[at] = struct{}{}
		}
		if a.p.nodes[at.node].op == nodeByte {
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
	return a.intern(found, accept, unknown)
}

// shortest appends the place that takes the next byte on the shortest way from at, if one does.
func (a *automaton) shortest(found []place, at place) []place {
	for a.p.nodes[at.node].op != nodeByte {
		next, ok := a.follow(at)
		if !ok {
			return found
		}
		at = next
	}
	return append(found, at)
}

// follow is the next place on the shortest way from one that takes no byte, false at the end of what is known.
func (a *automaton) follow(at place) (place, bool) {
	n := &a.p.nodes[at.node]
	f := at.frame
	switch n.op {
	case nodeAlt:
		return place{n.alts[a.best[at.node]], f}, true
	case nodeCall:
		if n.next != 0 {
			f = a.push(f, n.next, 0, 0, false, false)
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

// intern is the one state of these places, which it puts in order.
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
	s := &state{places: slices.Clone(places), accept: accept, unknown: unknown, age: a.age, cost: infinite, tokens: infinite}
	if accept || unknown {
		s.cost, s.tokens = 0, 0
	}
	for _, p := range places {
		s.cost = min(s.cost, a.costOf(p))
		s.tokens = min(s.tokens, sum(a.tokens[p.node], p.frame.tokens))
		s.rounded = s.rounded || p.frame.rounded
	}
	a.states[string(key)] = s
	a.bytes += 250 + 24*len(places)
	return s
}

func (a *automaton) costOf(p place) int64 { return sum(a.costs[p.node], p.frame.cost) }

// step is the state after a byte; dead where the grammar does not allow it.
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
	var room [8]place
	seeds := room[:0]
	for _, p := range s.places {
		if n := &a.p.nodes[p.node]; a.p.sets[n.set].has(b) {
			seeds = append(seeds, place{n.next, p.frame})
		}
	}
	to := a.dead
	if len(seeds) > 0 {
		to = a.close(seeds)
	}
	s.next[k] = to
	return to
}

// after is the state after all of b.
func (a *automaton) after(s *state, b []byte) *state {
	for _, c := range b {
		if s = a.step(s, c); s == a.dead {
			break
		}
	}
	return s
}
