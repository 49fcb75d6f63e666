package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// byLength is a rope whose frequencies depend on the length of the sequence once it exceeds a limit (longrope,
// dynamic). The rows of a step use the frequencies of the sequence's length after the step, or of the length that it is
// known to reach. Keys of earlier steps are not rotated again, as in transformers 5.23 (dynamic_rope_update).
type byLength struct {
	rope  arch.Rope
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
