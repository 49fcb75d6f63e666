package cache

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// KV keeps the keys and values of all positions. The zero value is empty.
//
// It can rewind to any position and restores a snapshot if it has the positions before it. On a CPU it then reads the
// snapshot's memory, which it shares with all that restored the same, and has storage of its own for the positions
// after it. Storage grows by 256 positions, beyond 8192 by 1/32 to 1/16 of its size, or to what the sequence expects.
// Its first step is shorter on a CPU.
type KV struct {
	stored
	shared []part // positions before base, in memory that is only read; those from base on are in the storage
	base   int
	tails  []part // restored after the positions in storage, in order; the next use shares or copies them
	whole  bool   // its readers need all positions in one storage, so it shares nothing
	expect int    // see Sequence.Expect
}

// part is positions from at on, up to the next part or to the end.
type part struct {
	slots
	at int
}

// maxShared is the number of parts that are shared; the kernels take no more (kMaxShared in cpu/attention).
const maxShared = 64

func (c *KV) kind() Kind { return Kind{form: full, bits: c.bits, exact: c.exact} }

// State implements Layer.
func (c *KV) State() []*mlx.Array {
	c.settle(c.offset)
	return c.arrays()
}

// Reserve implements Attention. It does not copy storage past the offset.
func (c *KV) Reserve(k, v *mlx.Array, rows int) Storage {
	n := c.offset + rows
	c.settle(n)
	own, expected := n-c.base, max(n, c.expect)
	switch {
	case c.k == nil:
		c.replace(c.room(k, v, firstRoom(expected-c.base, k.Thread())))
	case c.offset == c.base && c.k.Dim(2) < own:
		c.replace(c.zeros(firstRoom(expected-c.base, k.Thread())))
	case c.k.Dim(2) < own:
		c.regrow(expected)
	}
	return c.current()
}

// View implements Attention.
func (c *KV) View() Storage {
	c.settle(c.offset)
	if c.k == nil && c.base > 0 {
		c.replace(c.shared[0].zeros(step))
	}
	return c.current()
}

// Whole implements Attention.
func (c *KV) Whole() Storage {
	c.whole = true
	c.settle(c.offset)
	if c.base > 0 {
		parts := c.parts(0, c.offset)
		parts[0].scope(func() { c.replace(join(ceil(c.offset), parts...)) })
		c.unshare(0)
	}
	return c.current()
}

func (c *KV) current() Storage {
	s := c.view(false)
	for i := range c.shared {
		p := slotsOf(c.shared, i, c.base)
		s.Shared = append(s.Shared, mlx.StorePart{
			Store: mlx.Store{K: p.k, V: p.v, Bits: c.bits}, Begin: p.begin, End: p.end,
		})
	}
	return s
}

// endOf returns where part i of a list ends. The list ends at end.
func endOf(list []part, i, end int) int {
	if i+1 < len(list) {
		return list[i+1].at
	}
	return end
}

// slotsOf returns the slots of part i of a list that ends at end.
func slotsOf(list []part, i, end int) slots {
	return list[i].part(0, endOf(list, i, end)-list[i].at)
}

// canShare reports whether the tails can be shared: not if there are positions in storage.
func (c *KV) canShare() bool {
	return len(c.tails) > 0 && !c.whole && c.tails[0].at == c.base && len(c.shared) < maxShared &&
		!c.tails[0].k.Thread().Info().GPU
}

// settle shares the tails, or copies them into storage for n positions.
func (c *KV) settle(n int) {
	if c.canShare() {
		c.joinTails()
		c.shared, c.tails, c.base = append(c.shared, c.tails...), nil, c.offset
		c.discard() // slots count from the new base: a holder of the old storage would miss the parts shared here
	}
	if len(c.tails) > 0 {
		c.regrow(n)
	}
}

// joinTails makes the tails few enough to be shared: it joins consecutive ones, those with the fewest positions.
func (c *KV) joinTails() {
	i, j := c.tooMany()
	if i == j {
		return
	}
	tails := c.slotsOfTails()[i:j]
	all := copied(tails...)
	free(tails)
	c.tails = slices.Replace(c.tails, i, j, part{all, c.tails[i].at})
}

// tooMany returns the range [i, j) of the tails that joinTails joins; it is empty if all of them can be shared.
func (c *KV) tooMany() (i, j int) { return fewest(c.slotsOfTails(), maxShared-len(c.shared)) }

func (c *KV) slotsOfTails() []slots {
	list := make([]slots, len(c.tails))
	for i := range c.tails {
		list[i] = slotsOf(c.tails, i, c.offset)
	}
	return list
}

// regrow copies all positions that are not shared to new storage for n positions.
func (c *KV) regrow(n int) {
	parts := c.parts(c.base, c.offset)
	parts[0].scope(func() { c.replace(join(ceil(n-c.base), parts...)) })
	c.drop(0)
}

// parts returns the positions [from, to) in order. There must be any.
func (c *KV) parts(from, to int) (list []slots) {
	add := func(begin, end int, all slots) { // all begins at position begin
		if a, b := max(from, begin), min(to, end); a < b {
			list = append(list, all.part(a-begin, b-begin))
		}
	}
	for i, p := range c.shared {
		add(p.at, endOf(c.shared, i, c.base), p.slots)
	}
	end := c.offset
	if len(c.tails) > 0 {
		end = c.tails[0].at
	}
	add(c.base, end, c.slots(0, end-c.base))
	for i, p := range c.tails {
		add(p.at, endOf(c.tails, i, c.offset), p.slots)
	}
	return list
}

// restored returns the bytes of restored positions that the next step copies.
func (c *KV) restored() (n int64) {
	tails := c.slotsOfTails()
	if c.canShare() {
		i, j := c.tooMany()
		tails = tails[i:j]
	}
	for _, p := range tails {
		n += p.slotBytes() * int64(p.len())
	}
	return n
}

// slotBytes returns the size of a position. There must be one.
func (c *KV) slotBytes() int64 {
	if c.k == nil {
		return c.shared[0].slotBytes()
	}
	return c.pair.slotBytes()
}

// drop removes the tails from position target on.
func (c *KV) drop(target int) { c.tails = freeFrom(c.tails, target) }

// unshare removes the shared parts from position target on, before base.
func (c *KV) unshare(target int) {
	c.shared = freeFrom(c.shared, target)
	c.base = target
}

// freeFrom frees the parts that begin at position target or later, and returns the others.
func freeFrom(list []part, target int) []part {
	for n := len(list); n > 0 && list[n-1].at >= target; n-- {
		mlx.Free(list[n-1].k, list[n-1].v)
		list = list[:n-1]
	}
	return list
}

// CanRewind implements Layer.
func (c *KV) CanRewind(target int) bool { return 0 <= target && target <= c.offset }

// Rewind implements Layer.
func (c *KV) Rewind(target int) bool {
	if c.open || !c.CanRewind(target) {
		return false
	}
	if c.drop(target); target < c.base {
		c.unshare(target)
		c.discard() // as in settle
	}
	c.offset = target
	return true
}

// Snapshot implements Layer. It has the positions from from on, and is nil if there are none. It shares the parts that
// the layer shares. If its other positions are most of the storage, it takes the storage over.
func (c *KV) Snapshot(from int) *Snapshot { return c.snapshot(max(from, 0), c.offset) }

// snapshot is Snapshot for the positions [from, to), and returns nil if there are none.
func (c *KV) snapshot(from, to int) *Snapshot {
	if c.open || to <= from {
		return nil
	}
	if to == c.offset && c.canFreeze(from) {
		c.freeze()
	}
	return &Snapshot{kind: c.kind(), from: from, to: to, runs: newRuns(c.parts(from, to), c.k)}
}

// canFreeze reports whether a snapshot from a position on should take over the storage instead of copying it.
func (c *KV) canFreeze(from int) bool {
	return c.k != nil && len(c.tails) == 0 && c.offset > c.base &&
		c.slots(max(0, from-c.base), c.offset-c.base).isMost() && !c.whole && len(c.shared) < maxShared &&
		!c.k.Thread().Info().GPU
}

// freeze shares the storage: nobody writes to it any more, and later positions get another one.
func (c *KV) freeze() {
	c.shared = append(c.shared, part{c.slots(0, c.offset-c.base), c.base})
	c.base = c.offset
	mlx.AsyncEval(c.arrays()...)
	mlx.Free(c.readers...)
	c.pair, c.readers = pair{}, nil
}

// Restore implements Layer. It needs the positions before those of the snapshot.
func (c *KV) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	if c.open || s.kind != c.kind() || target < 0 || target > s.to || c.offset < s.from {
		return false
	}
	c.Rewind(min(s.from, target))
	for _, r := range s.runs {
		if n := min(r.len(), target-c.offset); n > 0 {
			// with a handle of its own, because the snapshot may be closed before
			c.tails = append(c.tails, part{r.part(0, n).kept(), c.offset})
			c.offset += n
		}
	}
	return true
}

// Free implements Layer.
func (c *KV) Free() {
	c.drop(0)
	c.unshare(0)
	c.free()
}
