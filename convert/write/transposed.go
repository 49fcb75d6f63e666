package write

import (
	"io"

	"github.com/ingotml/ingot/convert/source"
)

// transposed reads the transposes of matrices, one after the other. Reads are of whole elements.
type transposed struct {
	of            io.ReaderAt
	matrices      int64
	rows, columns int64 // of each matrix that is read
	width         int64 // of an element, in bytes
}

// transposedOf reads the transposes of the matrices of a tensor, which are its last two dimensions.
func transposedOf(r io.ReaderAt, shape []int64, width int64) transposed {
	t := transposed{of: r, matrices: 1, width: width}
	for _, n := range shape[:len(shape)-2] {
		t.matrices *= n
	}
	t.rows, t.columns = shape[len(shape)-2], shape[len(shape)-1]
	return t
}

// ReadAt implements [io.ReaderAt]. It reads one range of each row of a matrix, so long reads cost less per element.
func (t transposed) ReadAt(p []byte, offset int64) (done int, err error) {
	each := t.rows * t.columns * t.width
	if offset+int64(len(p)) > t.matrices*each {
		return 0, io.EOF
	}
	for done < len(p) {
		at := offset + int64(done)
		n := int(min(int64(len(p)-done), each-at%each))
		if err := t.read(p[done:done+n], at/each*each, at%each/t.width); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// read reads elements of the transpose of the matrix at an offset, from element begin on.
func (t transposed) read(p []byte, offset, begin int64) error {
	end := begin + int64(len(p))/t.width
	first, last := begin/t.rows, (end-1)/t.rows
	strip := make([]byte, (last-first+1)*t.width)
	for row := range t.rows {
		if err := source.ReadFull(t.of, strip, offset+(row*t.columns+first)*t.width); err != nil {
			return err
		}
		for column := first; column <= last; column++ {
			if at := column*t.rows + row; at >= begin && at < end {
				copy(p[(at-begin)*t.width:][:t.width], strip[(column-first)*t.width:])
			}
		}
	}
	return nil
}
