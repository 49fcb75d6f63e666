package nn

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// Rope is rotary position embedding: it rotates pairs of channels by an angle proportional to the position.
type Rope struct {
	freqs       *mlx.Array // float32 [n]: radians per position; channels after the first 2n are unchanged
	scale       float64    // of the rotated channels (YaRN's attention factor)
	interleaved bool       // pairs are channels 2j and 2j+1, otherwise j and j+n
	byLength    *byLength  // usually nil
	grid        *grid      // usually nil
}

// NewRope computes the frequencies of a configuration for heads of dim channels.
func NewRope(t *mlx.Thread, w *Weights, r config.Rope, dim int) *Rope {
	freqs, scale := r.Frequencies(dim)
	rope := &Rope{freqs: w.Constant(mlx.FromSlice(t, radians(freqs))), scale: scale}
	if limit, ok := r.ByLength(); ok {
		rope.byLength = &byLength{rope: r, dim: dim, limit: limit}
	}
	return rope
}

// Inverse makes the rope rotate in the other direction. The rope must not depend on the length of the text.
func (r *Rope) Inverse(w *Weights) *Rope {
	r.freqs = w.constant(r.freqs, mlx.Negative)
	return r
}

// Interleaved pairs channels 2j and 2j+1, as GPT-J does, instead of j and j+n, as GPT-NeoX does.
func (r *Rope) Interleaved() *Rope {
	r.interleaved = true
	return r
}

// Angles returns the radians per position of each pair, and the factor of the rotated channels.
func (r *Rope) Angles() (freqs *mlx.Array, scale float64) { return r.freqs, r.scale }

// Apply rotates keys [T, heads, dim] and the queries of the rows of [Batch.Queried], each by its own position. A nil
// Rope returns them as they are.
func (r *Rope) Apply(b *Batch, q, k *mlx.Array) (rotatedQ, rotatedK *mlx.Array) {
	if r == nil {
		return q, k
	}
	if b.queryBatch != nil {
		return r.Queries(b.queryBatch, q), r.rotate(b, k)[0]
	}
	both := r.rotate(b, q, k)
	return both[0], both[1]
}

// ApplyNormed is Apply for queries and keys whose heads are normalized first.
func (r *Rope) ApplyNormed(b *Batch, qNorm, kNorm *Norm, q, k *mlx.Array) (rotatedQ, rotatedK *mlx.Array) {
	isFused := r != nil && b.queryBatch == nil && qNorm.fuses() && kNorm.fuses() &&
		qNorm.weight != nil && kNorm.weight != nil &&
		qNorm.eps == kNorm.eps && qNorm.plusOne == kNorm.plusOne && r.isConstant(b)
	if !isFused {
		return r.Apply(b, qNorm.Apply(q), kNorm.Apply(k))
	}
	at, isGridInterleaved, sections := r.positions(b)
	both := mlx.RotateNormedRows([]*mlx.Array{q, k}, []*mlx.Array{qNorm.weight, kNorm.weight}, qNorm.eps, qNorm.plusOne,
		at, r.freqs, r.interleaved, isGridInterleaved, r.scale, sections...)
	return both[0], both[1]
}

// Queries is Apply for layers that read another layer's keys.
func (r *Rope) Queries(b *Batch, q *mlx.Array) *mlx.Array { return r.rotate(b, q)[0] }

// isConstant reports whether the frequencies are the same for all rows of a batch.
func (r *Rope) isConstant(b *Batch) bool { return r.byLength == nil || r.byLength.covers(b) }

func (r *Rope) rotate(b *Batch, xs ...*mlx.Array) []*mlx.Array {
	at, isGridInterleaved, sections := r.positions(b)
	with := func(freqs *mlx.Array, scale float64, at *mlx.Array, xs []*mlx.Array) []*mlx.Array {
		return mlx.RotateRows(xs, at, freqs, r.interleaved, isGridInterleaved, scale, sections...)
	}
	if r.isConstant(b) {
		return with(r.freqs, r.scale, at, xs)
	}
	return r.byLength.rotate(b, at, xs, with)
}

func radians(freqs []float64) []float32 {
	out := make([]float32, len(freqs))
	for i, f := range freqs {
		out[i] = float32(f)
	}
	return out
}

// grid assigns the pairs of a rope to the positions in time, height and width.
type grid struct {
	pairs       []int // number for each axis
	interleaved bool
}

// Sections assigns the pairs to the positions in time, height and width, for batches that have a Grid. If interleaved,
// pair j belongs to height if j mod 3 = 1 and j < 3*pairs[1], to width if j mod 3 = 2 and j < 3*pairs[2], and otherwise
// to time. If not, the sections are consecutive, and pairs must sum to the rope's number of pairs.
func (r *Rope) Sections(pairs [3]int, interleaved bool) *Rope {
	r.grid = &grid{pairs: pairs[:], interleaved: interleaved}
	if interleaved {
		// A configuration may list more pairs than the rope has.
		count := make([]int, 3)
		for j := range r.freqs.Dim(0) {
			of := j % 3
			if j >= 3*pairs[of] {
				of = 0
			}
			count[of]++
		}
		r.grid.pairs = count
	}
	return r
}

// positions returns the positions that a batch's rows are rotated by, and the pairs of each axis.
func (r *Rope) positions(b *Batch) (at *mlx.Array, isGridInterleaved bool, sections []int) {
	if b.Grid == nil || r.grid == nil {
		return b.Positions, false, nil
	}
	return b.Grid, r.grid.interleaved, r.grid.pairs
}

// byLength is a rope whose frequencies depend on the length of the sequence once it exceeds a limit (longrope,
// dynamic). The rows of a step use the frequencies of the sequence's length after the step, or of the length that it is
// known to reach. Keys of earlier steps are not rotated again, as in transformers 5.23 (dynamic_rope_update).
type byLength struct {
	rope  config.Rope
	dim   int // of heads
	limit int // tokens up to which the frequencies are fixed

	last    int // length of the last lookup; all layers of a step use the same
	radians []float32
	scale   float64
}

// length returns the number of tokens that determines the segment's frequencies.
func (s Segment) length() int { return max(s.Text, s.Pos+s.Len) }

// covers reports whether all sequences of a batch are within the limit.
func (l *byLength) covers(b *Batch) bool {
	for _, s := range b.Segments {
		if s.length() > l.limit {
			b.LimitTo(1)
			return false
		}
	}
	b.LimitTo(l.limit)
	return true
}

// rotate rotates each segment separately. Positions are [T] or [n, T].
func (l *byLength) rotate(
	b *Batch, at *mlx.Array, xs []*mlx.Array,
	with func(freqs *mlx.Array, scale float64, at *mlx.Array, xs []*mlx.Array) []*mlx.Array,
) []*mlx.Array {
	pieces := make([][]*mlx.Array, len(xs))
	for _, s := range b.Segments {
		own := make([]*mlx.Array, len(xs))
		rows := mlx.Range(s.Row, s.Row+s.Len)
		for i, x := range xs {
			own[i] = mlx.SliceAxis(x, 0, rows)
		}
		freqs, scale := l.at(s.length())
		for i, x := range with(mlx.FromSlice(at.Thread(), freqs), scale, mlx.SliceAxis(at, -1, rows), own) {
			pieces[i] = append(pieces[i], x)
		}
	}
	out := make([]*mlx.Array, len(xs))
	for i, p := range pieces {
		if out[i] = p[0]; len(p) > 1 {
			out[i] = mlx.Concatenate(0, p...)
		}
	}
	return out
}

func (l *byLength) at(length int) (freqs []float32, scale float64) {
	if l.radians == nil || l.last != length {
		freqs, scale := l.rope.FrequenciesAt(l.dim, length)
		l.last, l.radians, l.scale = length, radians(freqs), scale
	}
	return l.radians, l.scale
}
