// Package nn provides the blocks that models share: packed batches, linear layers, embeddings, norms, rotary positions
// and attention over caches.
//
// A batch is packed: its rows are divided into segments, one per sequence, without padding. All blocks process the rows
// of all segments together; only [Attend] and recurrent layers use the segments, each with the cache of its sequence.
// Continuous batching, chunked prefill and draft verification are therefore the same operation, and models do not know
// about padding.
//
// Everything runs inside mlx.Thread.Do. Weights are kept arrays that the loader owns.
package nn

import (
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Segment is a run of consecutive rows of one sequence.
type Segment struct {
	Seq *cache.Sequence
	Row int // index of the first row in the batch
	Len int // number of rows
	Pos int // position of the first row in the sequence

	// Text is the number of tokens that the sequence is known to reach, such as the whole prompt during chunked prefill. 0
	// means up to the segment's end. Ropes whose frequencies depend on the length use it.
	Text int
}

// Batch is the input of a forward pass.
type Batch struct {
	Tokens    *mlx.Array // integers [T]
	Positions *mlx.Array // int32 [T]
	Segments  []Segment  // cover all rows, in order
	Want      []int      // rows whose output is wanted, ascending: the last rows of each segment, at least one; nil = all

	// For images.
	Grid    *mlx.Array // int32 [3, T]: positions in time, height and width; nil means Positions for all three
	Vectors []Vectors  // embeddings that replace looked-up ones; ascending and disjoint

	Unread     bool   // nobody reads the output: the last rank of a pipeline does not send it
	queryBatch *Batch // the batch of the wanted rows; see Ending

	// Longest is the largest sequence length for which the graph of this batch also holds at other positions. 0 means
	// unlimited. A forward pass lowers it when the graph depends on positions.
	Longest int
}

// Vectors are embeddings that do not come from the table, such as those of an image.
type Vectors struct {
	Row int        // the first row that they replace
	X   *mlx.Array // [n, hidden]
}

// Part is a sequence's contribution to a batch: the tokens after those that it has processed.
type Part struct {
	Seq    *cache.Sequence
	Tokens []int32
	All    bool // want the output of every row, not only of the last
	Text   int  // see Segment.Text

	Shift   int        // offset of the positions in time, height and width, which earlier images cause
	Grid    [3][]int32 // positions in time, height and width, one per token; nil means the sequence's own plus Shift
	Vectors []Vectors  // given embeddings; Row is relative to the part
}

// hasGrid reports whether the positions in time, height and width differ from the sequence's own.
func (p Part) hasGrid() bool { return p.Shift != 0 || p.Grid[0] != nil }

// NewBatch packs parts, in order. Parts must not be empty, and sequences must be distinct.
func NewBatch(t *mlx.Thread, parts ...Part) *Batch {
	b := &Batch{}
	tokens, positions := Rows(parts)
	first := 0
	var grid [3][]int32
	hasGrid := false
	for _, p := range parts {
		hasGrid = hasGrid || p.hasGrid()
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
	if hasGrid {
		b.Grid = mlx.FromSlice(t, slices.Concat(grid[:]...), 3, len(tokens))
	}
	return b
}

// Rows returns the tokens and positions of a batch of the parts.
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

// NextBatch returns a batch of one row for each part's sequence. tokens, [len(parts)], may not be computed yet. It uses
// Seq, Text and Shift of the parts.
func NextBatch(tokens *mlx.Array, parts ...Part) *Batch {
	b := &Batch{Tokens: tokens}
	var positions, shifted []int32
	hasGrid := false
	for i, p := range parts {
		at := p.Seq.Offset()
		b.Segments = append(b.Segments, Segment{Seq: p.Seq, Row: i, Len: 1, Pos: at, Text: p.Text})
		positions = append(positions, int32(at))
		shifted = append(shifted, int32(at+p.Shift))
		hasGrid = hasGrid || p.hasGrid()
	}
	b.Positions = mlx.FromSlice(tokens.Thread(), positions)
	if hasGrid {
		b.Grid = mlx.FromSlice(tokens.Thread(), slices.Concat(shifted, shifted, shifted), 3, len(parts))
	}
	return b
}

// Embedded returns the looked-up vectors x [T, hidden] with the given ones in their rows.
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

// LimitTo notes that the graph holds only for sequences of up to n tokens.
func (b *Batch) LimitTo(n int) {
	if b.Longest == 0 || n < b.Longest {
		b.Longest = n
	}
}

// Rows returns the number of rows.
func (b *Batch) Rows() int { return b.Tokens.Dim(0) }

// Wanted returns the rows of x [T, ...] whose output is wanted.
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
