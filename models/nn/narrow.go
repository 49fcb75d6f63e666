package nn

import (
	"fmt"

	"github.com/ingotml/ingot/mlx"
)

// Narrow returns the batch of the wanted rows only. It is for trailing layers without a cache of their own, which read
// the stored keys and values of earlier layers ([AttendStored]). All rows of the result are wanted. Arrays [T, ...] of
// the whole batch are reduced to it by Wanted.
func (b *Batch) Narrow() *Batch {
	if b.Want == nil {
		return b
	}
	if b.queryBatch != nil {
		return b.queryBatch
	}
	n := &Batch{Tokens: b.Wanted(b.Tokens), Positions: b.Wanted(b.Positions)}
	if b.Grid != nil {
		n.Grid = mlx.Transpose(b.Wanted(mlx.Transpose(b.Grid)))
	}
	row := 0
	for i, s := range b.Segments {
		end, last := s.Row+s.Len, row
		for last < len(b.Want) && b.Want[last] < end {
			last++
		}
		count := last - row
		if count == 0 || b.Want[row] != end-count {
			panic(&mlx.Error{Message: fmt.Sprintf("batch: the wanted rows of segment %d are not its last ones", i)})
		}
		n.Segments = append(n.Segments, Segment{
			Seq: s.Seq, Row: row, Len: count, Pos: s.Pos + s.Len - count, Text: s.length(),
		})
		row = last
	}
	return n
}

// Ending returns the batch for the attention of the last layer that must process all rows. [NormedQueries], [Rope] and
// [Attend] then compute sums, queries and results only for the wanted rows, but store the keys and values of all rows.
func (b *Batch) Ending() *Batch {
	if b.Want == nil {
		return b
	}
	e := *b
	e.queryBatch = b.Narrow()
	return &e
}

// Queried returns the rows of x [T, ...] that need queries: all, or after Ending only those whose logits are wanted.
func (b *Batch) Queried(x *mlx.Array) *mlx.Array {
	if b.queryBatch == nil {
		return x
	}
	return b.Wanted(x)
}

// QueryRows returns the batch of the rows that [Batch.Queried] selects.
func (b *Batch) QueryRows() *Batch {
	if b.queryBatch == nil {
		return b
	}
	return b.queryBatch
}
