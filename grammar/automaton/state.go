package automaton

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
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

const infinite = math.MaxInt64 / 4

// forced is the text that must follow a state, as tokens.
type forced struct{ tokens []int32 }

// front is the set of states that all texts of some kinds of bytes lead to. Where none of them is dead, the tokens of
// these kinds are allowed, although they lead to different states: as in a text that a pattern must match somewhere.
// Where some are dead, a mask walks the bytes.
type front struct {
	states  []*state // by id
	most    int64    // the most tokens that one of the states needs
	unknown bool     // of one of the states
	rounded bool
	next    []*front // by kind; nil: not computed yet

	looping, notLooping uint64 // kinds that lead to this front again, or do not

	survivors []*front // by kind, see refused.go; nil: not computed yet
	endings   map[endingKey]*ending
}

// mask is the set of tokens that may follow a state.
type mask struct {
	bits     []uint32
	any      bool
	most     int64     // upper bound of state.tokens after any allowed token
	subtrees []subtree // parts that the truncated stack cannot decide; empty for full stacks
}

// subtree is the part of a vocabulary's trie at a node. The token of the node is decided; those below it are not.
type subtree struct {
	trie *trie.Trie
	node int32
	path []byte // from the root of the trie
}

// countHorizon is the count above which a truncated stack treats a repetition as unbounded. Longer tokens are walked
// with the exact count.
const countHorizon = vocabulary.PlainLengths

// undecided reports whether only a less truncated state can decide what follows the given number of bytes of a token.
func (s *state) undecided(bytes int) bool { return s.unknown || s.rounded && bytes >= countHorizon }

// ending are the states of a front from which some bytes of a kind lead to the states of another ending, and these
// bytes.
type ending struct {
	states []*state
	bytes  [256]uint8 // 1: of these bytes
}

// endingKey is what an ending of a front leads to: nil is the dead state.
type endingKey struct {
	kind uint8
	to   *ending
}

// frame is a return stack: what follows the current rule or repeated body, on top of another frame. Equal stacks are
// the same frame.
type frame struct {
	id   uint32
	node int32 // of a call: where it returns to; of a repetition: the repeat node
	// Of a repetition: how often the body must and may run again after this pass; max < 0: unbounded. Of a call: min is
	// 1 for a character, max a mark of unique.go.
	min, max int32
	repeat   bool
	rounded  bool // a count in this or a lower frame is approximate, see cut
	up       *frame
	cost     int64 // fewest bytes from here to the end of the text
	tokens   int64 // token bound for them, a sum over the stack, see findCosts
}

type frameKey struct {
	up       uint32
	node     int32
	min, max int32
	flags    uint8
}

// uniqueState is what only states of such grammars have.
type uniqueState struct {
	opens bool     // a bracket before this state begins an array whose items are compared
	again []*state // by byte class: the successor if the item that ends there repeats one before it

	known, inside, free, loose bool // see findUnique
}

func (s *state) uniqueState() *uniqueState {
	if s.unique == nil {
		s.unique = &uniqueState{}
	}
	return s.unique
}

// stateTable finds the state of a set of places: a hash table of which at most half is in use.
type stateTable struct {
	slots []stateSlot
	used  int
}

type stateSlot struct {
	hash uint64
	s    *state // nil: free
}

// hashOf returns a hash of what identifies a state.
func hashOf(places []place, accept, unknown bool) uint64 {
	const factor = 0x9e3779b97f4a7c15
	h := uint64(len(places))
	if accept {
		h |= 1 << 32
	}
	if unknown {
		h |= 1 << 33
	}
	for _, p := range places {
		h = (h ^ h>>29 ^ uint64(uint32(p.node))<<32 ^ uint64(p.frame.id)) * factor
	}
	return h ^ h>>32
}

func (t *stateTable) find(hash uint64, places []place, accept, unknown bool) *state {
	if t.slots == nil {
		return nil
	}
	for i := hash; ; i++ {
		slot := &t.slots[i&uint64(len(t.slots)-1)]
		if slot.s == nil {
			return nil
		}
		if slot.hash == hash && slot.s.accept == accept && slot.s.unknown == unknown && slices.Equal(slot.s.places, places) {
			return slot.s
		}
	}
}

// add adds a state that the table lacks.
func (t *stateTable) add(hash uint64, s *state) {
	if t.used++; 2*t.used > len(t.slots) {
		old := t.slots
		t.slots = make([]stateSlot, max(64, 4*len(old)))
		for _, slot := range old {
			if slot.s != nil {
				t.put(slot)
			}
		}
	}
	t.put(stateSlot{hash, s})
}

func (t *stateTable) put(slot stateSlot) {
	i := slot.hash
	for t.slots[i&uint64(len(t.slots)-1)].s != nil {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = slot
}
