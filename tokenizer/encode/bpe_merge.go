package encode

import (
	"math/bits"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/fault"
)

const (
	// scanLimit is the number of symbols up to which a scan of all pairs per merge beats a heap.
	scanLimit = 48
	// maxKept bounds the length of working buffers that are kept for the next Encode.
	maxKept = 1 << 16
	noRank  = ^uint32(0)
)

// mergeTable is an open-addressing hash table from pairs of ids to the rank and the id of their merge.
type mergeTable struct {
	slots []mergeSlot // at most half full
	used  int
	shift uint
}

type mergeSlot struct {
	pair uint64 // left<<32 | right; ids have 31 bits, so freePair is no valid pair
	rank uint32
	id   int32
}

const freePair = ^uint64(0)

// newMergeTable returns a table of merges. Of equal pairs the last one wins, as in the reference.
func newMergeTable(merges []mergeSlot) (mergeTable, error) {
	t := mergeTable{}
	t.resize(1 << max(6, bits.Len(uint(max(1, 2*len(merges))-1))))
	for _, m := range merges {
		if !t.set(int32(m.pair>>32), int32(uint32(m.pair)), m.id, m.rank) {
			return t, errCollide
		}
	}
	return t, nil
}

// mostProbes bounds the slots that a search in a hash table reads. Tables of published vocabularies need a tenth.
const mostProbes = 512

// errCollide reports a vocabulary that makes searches long, which only a hostile one does.
var errCollide = fault.Errorf(fault.ErrUnsupported, "tokenizer: more than %d entries of its vocabulary collide",
	mostProbes)

// resize rehashes into n slots, a power of two.
func (t *mergeTable) resize(n int) {
	old := t.slots
	t.slots = make([]mergeSlot, n)
	t.shift = uint(65 - bits.Len(uint(n)))
	for i := range t.slots {
		t.slots[i].pair = freePair
	}
	for _, s := range old {
		if s.pair != freePair {
			*t.find(s.pair) = s // in a table twice as large, no search is longer
		}
	}
}

func pairOf(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// find returns the slot of a pair, or the free one where it belongs; nil if the search would be long.
func (t *mergeTable) find(pair uint64) *mergeSlot {
	mask := len(t.slots) - 1
	at := int(pair * 0x9e3779b97f4a7c15 >> t.shift)
	for i := range mostProbes {
		if s := &t.slots[(at+i)&mask]; s.pair == pair || s.pair == freePair {
			return s
		}
	}
	return nil
}

// set adds a merge. Of equal pairs the last one wins, as in the reference. It returns false if a search would be long.
func (t *mergeTable) set(left, right, id int32, rank uint32) bool {
	pair := pairOf(left, right)
	s := t.find(pair)
	if s == nil {
		return false
	}
	if s.pair == freePair {
		if t.used++; 2*t.used > len(t.slots) {
			t.resize(2 * len(t.slots))
			s = t.find(pair)
		}
	}
	*s = mergeSlot{pair, rank, id}
	return true
}

// rank returns the rank and the merged id of a pair, noRank if it does not merge.
func (t *mergeTable) rank(left, right int32) (rank uint32, id int32) {
	if s := t.find(pairOf(left, right)); s != nil && s.pair != freePair {
		return s.rank, s.id
	}
	return noRank, 0
}

// mergeBuffer is the working memory of apply.
type mergeBuffer struct {
	ranks []uint32
	prev  []int32
	next  []int32
	queue []uint64
}

func (b *mergeBuffer) shrink() {
	if cap(b.queue) > maxKept || cap(b.next) > maxKept {
		*b = mergeBuffer{}
	}
}

// apply merges symbols, which it overwrites, and appends the result to ids. It always merges the pair with the lowest
// rank, the leftmost of equal ones.
func (t *mergeTable) apply(w *work.Meter, ids, symbols []int32, buffer *mergeBuffer) ([]int32, error) {
	if len(symbols) <= scanLimit {
		return append(ids, t.applyShort(symbols, buffer)...), w.Spend(pairWork * len(symbols))
	}
	return t.applyLong(w, ids, symbols, buffer)
}

// pairWork is what a pair of symbols costs, on average.
const pairWork = 32

func (t *mergeTable) applyShort(s []int32, buffer *mergeBuffer) []int32 {
	if len(s) < 2 {
		return s
	}
	ranks := buffer.ranks[:0] // ranks[i] is the rank of the pair at i
	for i := range len(s) - 1 {
		r, _ := t.rank(s[i], s[i+1])
		ranks = append(ranks, r)
	}
	buffer.ranks = ranks
	for {
		best, at := noRank, 0
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if best == noRank {
			return s
		}
		_, s[at] = t.rank(s[at], s[at+1])
		s = append(s[:at+1], s[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at < len(ranks) {
			ranks[at], _ = t.rank(s[at], s[at+1])
		}
		if at > 0 {
			ranks[at-1], _ = t.rank(s[at-1], s[at])
		}
	}
}

// applyLong keeps the symbols in a linked list and the pairs in a heap, so it takes O(n log n) for n symbols. A heap
// entry is rank<<32 | position of the left symbol. It is stale if the pair at that position has another rank now.
func (t *mergeTable) applyLong(w *work.Meter, ids, s []int32, buffer *mergeBuffer) ([]int32, error) {
	n := len(s)
	prev, next, queue := buffer.prev[:0], buffer.next[:0], buffer.queue[:0]
	for i := range s {
		if err := w.Spend(pairWork); err != nil {
			return ids, err
		}
		prev = append(prev, int32(i-1))
		next = append(next, int32(i+1))
		if i+1 < n {
			if r, _ := t.rank(s[i], s[i+1]); r != noRank {
				queue = append(queue, uint64(r)<<32|uint64(i))
			}
		}
	}
	h := heap(queue)
	h.init()
	const gone = -1
	for len(h) > 0 {
		if err := w.Spend(pairWork); err != nil {
			return ids, err
		}
		top := h.pop()
		at := int32(uint32(top))
		if s[at] == gone || int(next[at]) == n {
			continue
		}
		right := next[at]
		r, id := t.rank(s[at], s[right])
		if uint64(r) != top>>32 {
			continue
		}
		s[at], s[right] = id, gone
		next[at] = next[right]
		if after := next[at]; int(after) < n {
			prev[after] = at
			if r, _ := t.rank(id, s[after]); r != noRank {
				h.push(uint64(r)<<32 | uint64(at))
			}
		}
		if before := prev[at]; before >= 0 {
			if r, _ := t.rank(s[before], id); r != noRank {
				h.push(uint64(r)<<32 | uint64(before))
			}
		}
	}
	for i := 0; i < n; i = int(next[i]) {
		ids = append(ids, s[i])
	}
	buffer.prev, buffer.next, buffer.queue = prev, next, h
	return ids, nil
}

// heap is a binary min-heap. container/heap would box each of millions of entries.
type heap []uint64

func (h heap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *heap) push(v uint64) {
	*h = append(*h, v)
	q := *h
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up] <= v {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = v
}

func (h *heap) pop() uint64 {
	q := *h
	top := q[0]
	last := len(q) - 1
	q[0] = q[last]
	*h = q[:last]
	if last > 0 {
		h.down(0)
	}
	return top
}

func (h heap) down(i int) {
	v := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= v {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = v
}
