package write

import (
	"io"
	"sync"

	"github.com/ingotml/ingot/convert/source"
)

// transposed reads the transposes of matrices one after the other. Reads are of whole elements. It keeps the strip that
// it transposed last, because tensors that are made of single columns read them one by one. It is safe for concurrent
// use.
type transposed struct {
	of            io.ReaderAt
	rows, columns int64 // of each matrix that is read
	count         int64 // number of matrices
	width         int64 // of an element, in bytes

	mu         sync.Mutex
	strip      []byte // elements [begin, end) of the result
	begin, end int64
}

// maxStrip bounds the bytes of a strip of two or more columns.
const maxStrip = 4 << 20

// ReadAt implements [io.ReaderAt].
func (t *transposed) ReadAt(p []byte, offset int64) (int, error) {
	at, end := offset/t.width, (offset+int64(len(p)))/t.width
	if end > t.rows*t.columns*t.count {
		return 0, io.EOF
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for at < end {
		if at < t.begin || at >= t.end {
			if err := t.load(at); err != nil {
				return 0, err
			}
		}
		stop := min(end, t.end)
		n += copy(p[n:], t.strip[(at-t.begin)*t.width:(stop-t.begin)*t.width])
		at = stop
	}
	return n, nil
}

// load transposes the strip of columns that has an element of the result.
func (t *transposed) load(at int64) error {
	each := t.rows * t.columns
	matrix, wide := at/each, max(1, maxStrip/(t.rows*t.width))
	first := at % each / t.rows / wide * wide
	n := min(wide, t.columns-first)
	t.strip, t.begin, t.end = make([]byte, n*t.rows*t.width), 0, 0
	line := make([]byte, n*t.width)
	for row := range t.rows {
		if err := source.ReadFull(t.of, line, (matrix*each+row*t.columns+first)*t.width); err != nil {
			return err
		}
		for c := range n {
			copy(t.strip[(c*t.rows+row)*t.width:][:t.width], line[c*t.width:])
		}
	}
	t.begin = matrix*each + first*t.rows
	t.end = t.begin + n*t.rows
	return nil
}
