package convert

import (
	"fmt"
	"io"
	"iter"

	"github.com/ingotml/ingot/arch"
)

// stretch is a run of elements of one source.
type stretch struct {
	source       int
	begin, count int64
}

// cut deals the elements of a tensor out in batches of n, the last one perhaps smaller. Stretches that follow each
// other in their source become one, so that each is one read.
func cut(pieces iter.Seq[arch.Piece], n int64) iter.Seq[[]stretch] {
	return func(yield func([]stretch) bool) {
		var batch []stretch
		room := n
		for p := range pieces {
			for p.Count > 0 {
				take := min(p.Count, room)
				last := len(batch) - 1
				if last >= 0 && batch[last].source == p.Source && batch[last].begin+batch[last].count == p.Begin {
					batch[last].count += take
				} else {
					batch = append(batch, stretch{p.Source, p.Begin, take})
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

func countOf(batch []stretch) int64 {
	var n int64
	for _, s := range batch {
		n += s.count
	}
	return n
}

// origin finds the source, and the element of it, that element i of a batch comes from.
func origin(batch []stretch, i int64) (source int, element int64) {
	for _, s := range batch {
		if i < s.count {
			return s.source, s.begin + i
		}
		i -= s.count
	}
	return -1, i
}

// readBatch fills buf with the elements of a batch, each of width bytes.
func readBatch(buf []byte, batch []stretch, sources []io.ReaderAt, width int64) error {
	for _, s := range batch {
		n := s.count * width
		if int64(len(buf)) < n || s.source >= len(sources) {
			return fmt.Errorf("%w: the plan is not of this checkpoint", ErrSource)
		}
		if err := readFull(sources[s.source], buf[:n], s.begin*width); err != nil {
			return err
		}
		buf = buf[n:]
	}
	return nil
}

func readFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
