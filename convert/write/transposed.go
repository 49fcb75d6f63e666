package write

import (
	"io"

	"github.com/ingotml/ingot/convert/source"
)

// transposed reads the transpose of a matrix. Reads are of whole elements.
type transposed struct {
	of            io.ReaderAt
	rows, columns int64 // of the matrix that is read
	width         int64 // of an element, in bytes
}

// ReadAt implements [io.ReaderAt]. It reads one range of each row of the matrix, so long reads cost less per element.
func (t transposed) ReadAt(p []byte, offset int64) (int, error) {
	begin, end := offset/t.width, (offset+int64(len(p)))/t.width
	if end > t.rows*t.columns {
		return 0, io.EOF
	}
	if begin == end {
		return 0, nil
	}
	first, last := begin/t.rows, (end-1)/t.rows
	strip := make([]byte, (last-first+1)*t.width)
	for row := range t.rows {
		if err := source.ReadFull(t.of, strip, (row*t.columns+first)*t.width); err != nil {
			return 0, err
		}
		for column := first; column <= last; column++ {
			if at := column*t.rows + row; at >= begin && at < end {
				copy(p[(at-begin)*t.width:][:t.width], strip[(column-first)*t.width:])
			}
		}
	}
	return len(p), nil
}
