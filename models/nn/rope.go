package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// Rope rotates pairs of channels by an angle that grows with the position.
type Rope struct {
	freqs      *mlx.Array // float32 [n]: radians per position; channels after the first 2n pass
	scale      float64    // of the rotated channels (yarn's attention factor)
	neighbours bool       // channels 2j and 2j+1 are a pair, else j and j+n
	byLength   *byLength  // nil for most
	grid       *grid      // nil for most
}

// NewRope prepares the frequencies of a configuration for heads of dim channels. The model gives what it returns to
// [AttendOptions] too.
func NewRope(t *mlx.Thread, w *Weights, r arch.Rope, dim int) *Rope {
	freqs, scale := r.Frequencies(dim)
	rope := &Rope{freqs: w.Constant(radians(t, freqs)), scale: scale}
	if _, ok := r.ByLength(); ok {
		rope.byLength = &byLength{rope: r, dim: dim}
	}
	return rope
}

// Neighbours pairs the channels 2j and 2j+1.
func (r *Rope) Neighbours() *Rope {
	r.neighbours = true
	return r
}

// After says that keys, when attention meets them, have so many channels before those of Apply.
func (r *Rope) After(channels int) *Rope {
	if r.byLength != nil {
		r.byLength.first = channels
	}
	return r
}

// Apply rotates queries and keys [T, heads, dim], each row by its own position. Where the frequencies depend on the length
// of the text it leaves them as they are, for attention to rotate: see [AttendOptions].
func (r *Rope) Apply(b *Batch, q, k *mlx.Array) (rotatedQ, rotatedK *mlx.Array) {
	at, interleaved, sections := r.positions(b)
	if r.byLength != nil {
		return q, k
	}
	both := mlx.RotateRows([]*mlx.Array{q, k}, at, r.freqs, r.neighbours, interleaved, r.scale, sections...)
	return both[0], both[1]
}

// Queries is Apply for layers that read the keys of another.
func (r *Rope) Queries(b *Batch, q *mlx.Array) *mlx.Array {
	if r.byLength != nil {
		return q
	}
	return mlx.RotateRows([]*mlx.Array{q}, b.Positions, r.freqs, r.neighbours, false, r.scale)[0]
}

func radians(t *mlx.Thread, freqs []float64) *mlx.Array {
	out := make([]float32, len(freqs))
	for i, f := range freqs {
		out[i] = float32(f)
	}
	return mlx.FromSlice(t, out)
}
