package write

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// matrices returns matrices of different bytes, and their transposes.
func matrices(count, rows, columns, width int64) (data, want []byte) {
	for i := range count * rows * columns * width {
		data = append(data, byte(i%251))
	}
	for m := range count {
		for c := range columns {
			for r := range rows {
				want = append(want, data[((m*rows+r)*columns+c)*width:][:width]...)
			}
		}
	}
	return data, want
}

// Every range of transposed matrices, of elements of one byte and of two.
func TestTransposed(t *testing.T) {
	const rows, columns = 3, 5
	for _, count := range []int64{1, 2} {
		for _, width := range []int64{1, 2} {
			data, want := matrices(count, rows, columns, width)
			x := &transposed{of: bytes.NewReader(data), rows: rows, columns: columns, count: count, width: width}
			for begin := int64(0); begin <= count*rows*columns; begin++ {
				for end := begin; end <= count*rows*columns; end++ {
					got := make([]byte, (end-begin)*width)
					if err := source.ReadFull(x, got, begin*width); err != nil || !bytes.Equal(got, want[begin*width:end*width]) {
						t.Fatalf("elements %d to %d of %d bytes: %v, %v", begin, end, width, got, err)
					}
				}
			}
			if _, err := x.ReadAt(make([]byte, 2*width), (count*rows*columns-1)*width); !errors.Is(err, io.EOF) {
				t.Errorf("read beyond the end: %v", err)
			}
			short := &transposed{of: bytes.NewReader(data[:width]), rows: rows, columns: columns, count: count, width: width}
			if err := source.ReadFull(short, make([]byte, width), width); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a matrix that ends early: %v", err)
			}
		}
	}
}

// Ranges of matrices that are several strips wide, in any order.
func TestTransposedStrips(t *testing.T) {
	const count, rows, columns, width = 2, maxStrip / 32, 20, 2
	data, want := matrices(count, rows, columns, width)
	x := &transposed{of: bytes.NewReader(data), rows: rows, columns: columns, count: count, width: width}
	r := rand.New(rand.NewPCG(3, 31))
	for range runtest.Rounds(60) {
		begin := r.Int64N(count * rows * columns)
		end := begin + r.Int64N(min(3*rows, count*rows*columns-begin)+1)
		got := make([]byte, (end-begin)*width)
		if err := source.ReadFull(x, got, begin*width); err != nil || !bytes.Equal(got, want[begin*width:end*width]) {
			t.Fatalf("elements %d to %d: %v", begin, end, err)
		}
	}
}
