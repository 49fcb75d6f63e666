package write

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/ingotml/ingot/convert/source"
)

// Every range of two transposed matrices, of elements of one byte and of two.
func TestTransposed(t *testing.T) {
	const matrices, rows, columns = 2, 3, 5
	shape := []int64{matrices, rows, columns}
	for _, width := range []int64{1, 2} {
		var matrix, want []byte
		for i := range matrices * rows * columns * width {
			matrix = append(matrix, byte(i))
		}
		for m := range int64(matrices) {
			for c := range int64(columns) {
				for r := range int64(rows) {
					want = append(want, matrix[((m*rows+r)*columns+c)*width:][:width]...)
				}
			}
		}
		x := transposedOf(bytes.NewReader(matrix), shape, width)
		for begin := int64(0); begin <= matrices*rows*columns; begin++ {
			for end := begin; end <= matrices*rows*columns; end++ {
				got := make([]byte, (end-begin)*width)
				if err := source.ReadFull(x, got, begin*width); err != nil || !bytes.Equal(got, want[begin*width:end*width]) {
					t.Fatalf("elements %d to %d of %d bytes: %v, %v", begin, end, width, got, err)
				}
			}
		}
		if _, err := x.ReadAt(make([]byte, 2*width), (matrices*rows*columns-1)*width); !errors.Is(err, io.EOF) {
			t.Errorf("read beyond the end: %v", err)
		}
		short := transposedOf(bytes.NewReader(matrix[:width]), shape, width)
		if err := source.ReadFull(short, make([]byte, width), width); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a matrix that ends early: %v", err)
		}
	}
}
