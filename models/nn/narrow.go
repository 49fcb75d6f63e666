package nn

import (
	"fmt"

	"github.com/ingotml/ingot/mlx"
)

// Narrow is the batch of the wanted rows alone, for trailing layers that keep nothing of a sequence: they read what earlier
// layers stored ([AttendStored]), each row up to its own position. All its rows are wanted, of vectors [T, ...] made for
// the whole batch those that Wanted picks.
func (b *Batch) Narrow() *Batch {
	if b.Want == nil {
		return b
	}
	if b.asking != nil {
		return b.asking
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
			panic(&mlx.Error{Message: fmt.Sprintf("batch: the rows wanted of segment %d are not its last ones", i)})
		}
		n.Segments = append(n.Segments, Segment{Seq: s.Seq, Row: row, Len: count, Pos: s.Pos + s.Len - count, Text: s.length()})
		row = last
	}
	return n
}

// Ending is the batch for the attention of a layer after which only wanted rows go on. Of these alone it asks: sums, queries and
// results of [NormedQueries], [Rope] and [Attend] have no others, while keys and values of all rows are stored.
func (b *Batch) Ending() *Batch {
	if b.Want == nil {
		return b
	}
	e := *b
	e.asking = b.Narrow()
	return &e
}

// Asked picks the rows [T, ...] that the batch asks for: all, or after Ending the wanted ones.
func (b *Batch) Asked(x *mlx.Array) *mlx.Array {
	if b.asking == nil {
		return x
	}
	return b.Wanted(x)
}

// asks is the batch of the rows that Asked picks.
func (b *Batch) asks() *Batch {
	if b.asking == nil {
		return b
	}
	return b.asking
}
