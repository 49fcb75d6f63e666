package nn

import "github.com/ingotml/ingot/mlx"

// Narrow is the batch of the wanted rows alone, for trailing layers that keep nothing of a sequence: they read what earlier
// layers stored ([AttendStored]), each row up to its own position. All its rows are wanted, of vectors [T, ...] made for
// the whole batch those that Wanted picks. A sequence whose rows are wanted here and there has several segments.
func (b *Batch) Narrow() *Batch {
	if b.Want == nil {
		return b
	}
	n := &Batch{Tokens: b.Wanted(b.Tokens), Positions: b.Wanted(b.Positions)}
	if b.Grid != nil {
		n.Grid = mlx.Transpose(b.Wanted(mlx.Transpose(b.Grid)))
	}
	s := 0
	for i, row := range b.Want {
		for row >= b.Segments[s].Row+b.Segments[s].Len {
			s++
		}
		from := b.Segments[s]
		pos := from.Pos + row - from.Row
		if last := len(n.Segments) - 1; last >= 0 && n.Segments[last].Seq == from.Seq && n.Segments[last].Pos+n.Segments[last].Len == pos {
			n.Segments[last].Len++
			continue
		}
		n.Segments = append(n.Segments, Segment{Seq: from.Seq, Row: i, Len: 1, Pos: pos, Text: from.length()})
	}
	return n
}
