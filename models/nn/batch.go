// Package nn holds the blocks that models share: the packed batch, linear layers, embeddings, norms, rotary positions
// and attention over caches.
//
// A batch is packed: one stream of rows, cut into segments of one sequence each. Blocks see all rows at once, except
// [Attend], which walks the segments, each with its sequence's own cache; so continuous batching, chunked prefill and
// checking a draft are one thing, and no model knows of padding. Everything runs inside mlx.Thread.Do; weights are kept
// arrays that the loader owns.
package nn

import (
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Segment is a run of rows of one sequence.
type Segment struct {
	Seq *cache.Sequence
	Row int // of the batch, where the segment starts
	Len int // rows
	Pos int // position in the sequence of its first row
}

// Batch is the input of one forward.
type Batch struct {
	Tokens    *mlx.Array // integers [T]
	Positions *mlx.Array // int32 [T]
	Segments  []Segment  // in order of rows, covering them all
	Want      []int      // rows whose output is wanted, ascending; nil = all
}

// Part is what a sequence adds to a batch: tokens that follow what it has seen.
type Part struct {
	Seq    *cache.Sequence
	Tokens []int32
	All    bool // want the output of every row, not of the last alone
}

// NewBatch packs parts, in order. No part may be empty, and no sequence may come twice.
func NewBatch(t *mlx.Thread, parts ...Part) *Batch {
	b := &Batch{}
	var tokens, positions []int32
	for _, p := range parts {
		start := p.Seq.Offset()
		b.Segments = append(b.Segments, Segment{Seq: p.Seq, Row: len(tokens), Len: len(p.Tokens), Pos: start})
		for i := range p.Tokens {
			if p.All || i == len(p.Tokens)-1 {
				b.Want = append(b.Want, len(tokens)+i)
			}
			positions = append(positions, int32(start+i))
		}
		tokens = append(tokens, p.Tokens...)
	}
	if len(b.Want) == len(tokens) {
		b.Want = nil
	}
	b.Tokens = mlx.FromSlice(t, tokens)
	b.Positions = mlx.FromSlice(t, positions)
	return b
}

// NextBatch is one row of a sequence whose token, [1], the device may still be choosing.
func NextBatch(seq *cache.Sequence, token *mlx.Array) *Batch {
	at := seq.Offset()
	return &Batch{
		Tokens:    token,
		Positions: mlx.FromSlice(token.Thread(), []int32{int32(at)}),
		Segments:  []Segment{{Seq: seq, Len: 1, Pos: at}},
	}
}

// Rows is the number of rows.
func (b *Batch) Rows() int { return b.Tokens.Dim(0) }

// Wanted picks the rows [T, ...] whose output is wanted.
func (b *Batch) Wanted(x *mlx.Array) *mlx.Array {
	if b.Want == nil {
		return x
	}
	rows := make([]int32, len(b.Want))
	for i, r := range b.Want {
		rows[i] = int32(r)
	}
	return mlx.Take(x, mlx.FromSlice(x.Thread(), rows), 0)
}
