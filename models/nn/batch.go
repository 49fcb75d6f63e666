// Package nn holds the blocks that models share: the packed batch, linear layers, embeddings, norms, rotary positions
// and attention over caches.
//
// A batch is packed: one stream of rows, cut into segments of one sequence each. Blocks see all rows at once, except
// [Attend], which walks the segments, each with its sequence's own cache; so continuous batching, chunked prefill and
// checking a draft are one thing, and no model knows of padding. Everything runs inside mlx.Thread.Do; weights are kept
// arrays that the loader owns.
package nn

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Segment is a run of rows of one sequence.
type Segment struct {
	Seq *cache.Sequence
	Row int // of the batch, where the segment starts
	Len int // rows
	Pos int // position in the sequence of its first row

	// Text is the number of tokens that the sequence is known to get, as a prompt in pieces does; 0 = those up to the
	// segment's end. Ropes by the length of the text rotate by it.
	Text int
}

// Batch is the input of one forward.
type Batch struct {
	Tokens    *mlx.Array // integers [T]
	Positions *mlx.Array // int32 [T]
	Segments  []Segment  // in order of rows, covering them all
	Want      []int      // rows whose output is wanted, ascending, of each segment the last ones, at least one; nil = all

	// What pictures need of a batch.
	Grid    *mlx.Array // int32 [3, T]: time, height and width of the rows; nil = Positions for all three
	Vectors []Vectors  // rows whose embedding is given instead of looked up, ascending, apart

	asking *Batch // of the wanted rows alone; see Ending

	// Longest is how many tokens a text may have for a batch at other positions to be evaluated as this one is; 0 = any number. A
	// forward lowers it where it asks for positions on the host.
	Longest int
}

// Vectors are embeddings that come from elsewhere, as those of a picture do.
type Vectors struct {
	Row int        // the first row that they are for
	X   *mlx.Array // [n, hidden]
}

// Part is what a sequence adds to a batch: tokens that follow what it has seen.
type Part struct {
	Seq    *cache.Sequence
	Tokens []int32
	All    bool // want the output of every row, not of the last alone
	Text   int  // that of Segment

	Shift   int        // of positions in time, height and width against the sequence's own, as pictures before leave it
	Grid    [3][]int32 // those positions, one for each token; without them the sequence's own plus Shift
	Vectors []Vectors  // given embeddings; Row counts from the part's first
}

// gridded tells whether rows stand elsewhere than their place in the sequence says.
func (p Part) gridded() bool { return p.Shift != 0 || p.Grid[0] != nil }

// NewBatch packs parts, in order. No part may be empty, and no sequence may come twice.
func NewBatch(t *mlx.Thread, parts ...Part) *Batch {
	b := &Batch{}
	tokens, positions := Rows(parts)
	first := 0
	var grid [3][]int32
	gridded := false
	for _, p := range parts {
		gridded = gridded || p.gridded()
		for _, v := range p.Vectors {
			b.Vectors = append(b.Vectors, Vectors{Row: first + v.Row, X: v.X})
		}
		start := p.Seq.Offset()
		b.Segments = append(b.Segments, Segment{Seq: p.Seq, Row: first, Len: len(p.Tokens), Pos: start, Text: p.Text})
		for i := range p.Tokens {
			if p.All || i == len(p.Tokens)-1 {
				b.Want = append(b.Want, first+i)
			}
			for axis := range grid {
				at := int32(start + i + p.Shift)
				if own := p.Grid[axis]; own != nil {
					at = own[i]
				}
				grid[axis] = append(grid[axis], at)
			}
		}
		first += len(p.Tokens)
	}
	if len(b.Want) == len(tokens) {
		b.Want = nil
	}
	b.Tokens = mlx.FromSlice(t, tokens)
	b.Positions = mlx.FromSlice(t, positions)
	if gridded {
		b.Grid = mlx.FromSlice(t, slices.Concat(grid[:]...), 3, len(tokens))
	}
	return b
}

// Rows gives the tokens of parts, one after the other, and their positions, as a batch of them has them.
func Rows(parts []Part) (tokens, positions []int32) {
	for _, p := range parts {
		start := p.Seq.Offset()
		for i := range p.Tokens {
			positions = append(positions, int32(start+i))
		}
		tokens = append(tokens, p.Tokens...)
	}
	return tokens, positions
}

// NextBatch is one row of each part's sequence, whose tokens, [len(parts)], the device may still be choosing. Of the parts it
// takes Seq, Text and Shift.
func NextBatch(tokens *mlx.Array, parts ...Part) *Batch {
	b := &Batch{Tokens: tokens}
	var positions, there []int32
	gridded := false
	for i, p := range parts {
		at := p.Seq.Offset()
		b.Segments = append(b.Segments, Segment{Seq: p.Seq, Row: i, Len: 1, Pos: at, Text: p.Text})
		positions = append(positions, int32(at))
		there = append(there, int32(at+p.Shift))
		gridded = gridded || p.gridded()
	}
	b.Positions = mlx.FromSlice(tokens.Thread(), positions)
	if gridded {
		b.Grid = mlx.FromSlice(tokens.Thread(), slices.Concat(there, there, there), 3, len(parts))
	}
	return b
}

// Embedded puts the given vectors over the looked-up ones x [T, hidden].
func (b *Batch) Embedded(x *mlx.Array) *mlx.Array {
	if len(b.Vectors) == 0 {
		return x
	}
	var pieces []*mlx.Array
	done := 0
	for _, v := range b.Vectors {
		if v.Row > done {
			pieces = append(pieces, mlx.Slice(x, mlx.Range(done, v.Row), mlx.All()))
		}
		pieces = append(pieces, mlx.AsType(v.X, x.DType()))
		done = v.Row + v.X.Dim(0)
	}
	if done < x.Dim(0) {
		pieces = append(pieces, mlx.Slice(x, mlx.Range(done, x.Dim(0)), mlx.All()))
	}
	return mlx.Concatenate(0, pieces...)
}

// upTo says that what was built holds for texts of up to n tokens.
func (b *Batch) upTo(n int) {
	if b.Longest == 0 || n < b.Longest {
		b.Longest = n
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
