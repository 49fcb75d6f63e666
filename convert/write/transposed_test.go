package write

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/ingotml/ingot/convert/source"
)

// Every range of a transposed matrix, of elements of one byte and of two.
func TestTransposed(t *testing.T) {
	const rows, columns = 3, 5
	for _, width := range []int64{1, 2} {
		var matrix, want []byte
		for i := range rows * columns * width {
			matrix = append(matrix, byte(i))
		}
		for c := range int64(columns) {
			for r := range int64(rows) {
				want = append(want, matrix[(r*columns+c)*width:][:width]...)
			}
		}
		x := transposed{of: bytes.NewReader(matrix), rows: rows, columns: columns, width: width}
		for begin := int64(0); begin <= rows*columns; begin++ {
			for end := begin; end <= rows*columns; end++ {
				got := make([]byte, (end-begin)*width)
				if err := source.ReadFull(x, got, begin*width); err != nil || !bytes.Equal(got, want[begin*width:end*width]) {
					t.Fatalf("elements %d to %d of %d bytes: %v, %v", begin, end, width, got, err)
				}
			}
		}
		if _, err := x.ReadAt(make([]byte, 2*width), (rows*columns-1)*width); !errors.Is(err, io.EOF) {
			t.Errorf("read beyond the end: %v", err)
		}
		short := transposed{of: bytes.NewReader(matrix[:width]), rows: rows, columns: columns, width: width}
		if err := source.ReadFull(short, make([]byte, width), width); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a matrix that ends early: %v", err)
		}
	}
}
