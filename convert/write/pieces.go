package write

import (
	"fmt"
	"io"
	"iter"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
)

// sourceRange is a contiguous range of a source's elements.
type sourceRange struct {
	source       int
	begin, count int64
}

// batches divides a tensor's elements into batches of n; the last one may be smaller. Adjacent ranges of a source are
// merged, so that each is one read.
func batches(pieces iter.Seq[table.Piece], n int64) iter.Seq[[]sourceRange] {
	return func(yield func([]sourceRange) bool) {
		var batch []sourceRange
		room := n
		for p := range pieces {
			for p.Count > 0 {
				take := min(p.Count, room)
				last := len(batch) - 1
				if last >= 0 && batch[last].source == p.Source && batch[last].begin+batch[last].count == p.Begin {
					batch[last].count += take
				} else {
					batch = append(batch, sourceRange{p.Source, p.Begin, take})
				}
				p.Begin += take
				p.Count -= take
				if room -= take; room == 0 {
					if !yield(batch) {
						return
					}
					batch, room = nil, n
				}
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

func countOf(batch []sourceRange) int64 {
	var n int64
	for _, s := range batch {
		n += s.count
	}
	return n
}

// origin returns the source and its element that element i of a batch comes from.
func origin(batch []sourceRange, i int64) (source int, element int64) {
	for _, s := range batch {
		if i < s.count {
			return s.source, s.begin + i
		}
		i -= s.count
	}
	return -1, i
}

// readBatch reads a batch's elements, each width bytes wide, into buf.
func readBatch(buf []byte, batch []sourceRange, sources []io.ReaderAt, width int64) error {
	for _, s := range batch {
		n := s.count * width
		if int64(len(buf)) < n || s.source >= len(sources) {
			return fmt.Errorf("%w: the plan belongs to another checkpoint", source.ErrSource)
		}
		if err := source.ReadFull(sources[s.source], buf[:n], s.begin*width); err != nil {
			return err
		}
		buf = buf[n:]
	}
	return nil
}
