package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// byLength is a rope whose frequencies depend on the length of the text once it has outgrown a limit (longrope, dynamic).
// The rows of a step turn at those of the text's length after the step, or of the length that it is known to get; keys of
// earlier steps stay as they are. So does transformers 5.23 (dynamic_rope_update).
type byLength struct {
	rope  arch.Rope
	dim   int // of heads
	limit int // tokens, up to which the frequencies are those of a short text

	last    int // length of the last text, all of whose layers ask for the same
	radians []float32
}

// length is the number of tokens of the segment's text.
func (s Segment) length() int { return max(s.Text, s.Pos+s.Len) }

// covers tells whether all texts of a batch are short.
func (l *byLength) covers(b *Batch) bool {
	for _, s := range b.Segments {
		if s.length() > l.limit {
			b.upTo(1)
			return false
		}
	}
	b.upTo(l.limit)
	return true
}

// rotate rotates each segment on its own; positions are [T] or [n, T].
func (l *byLength) rotate(b *Batch, at *mlx.Array, xs []*mlx.Array, with func(freqs, at *mlx.Array, xs []*mlx.Array) []*mlx.Array) []*mlx.Array {
	pieces := make([][]*mlx.Array, len(xs))
	for _, s := range b.Segments {
		own := make([]*mlx.Array, len(xs))
		rows := mlx.Range(s.Row, s.Row+s.Len)
		for i, x := range xs {
			own[i] = mlx.SliceAxis(x, 0, rows)
		}
		freqs := mlx.FromSlice(at.Thread(), l.at(s.length()))
		for i, x := range with(freqs, mlx.SliceAxis(at, -1, rows), own) {
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

func (l *byLength) at(length int) []float32 {
	if l.radians == nil || l.last != length {
		freqs, _ := l.rope.FrequenciesAt(l.dim, length)
		l.last, l.radians = length, radians(freqs)
	}
	return l.radians
}
