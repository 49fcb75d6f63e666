package checkpoint

import (
	"math"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
)

// moved reads a tensor whose rows or columns have another order in the file.
type moved struct {
	from  packed.Elements
	width int64   // elements of a row
	rows  []int64 // row of the file for each row; nil = the same
	// columns is the order of blocks of size elements in a row; nil = the same.
	columns []int64
	size    int64
	each    func(float32) float32 // nil = nothing

	format quantize.Type  // of codes
	scales quantize.DType // of affine codes
}

// Floats implements [packed.Elements].
func (m moved) Floats(dst []byte, begin, count int64) error {
	err := m.gather([][]byte{dst}, []int64{4 * m.width}, begin, count, func(to [][]byte, row, rows int64) error {
		return m.from.Floats(to[0], row*m.width, rows*m.width)
	})
	if err != nil || m.each == nil {
		return err
	}
	for i := 0; i < len(dst); i += 4 {
		le.PutUint32(dst[i:], math.Float32bits(m.each(math.Float32frombits(le.Uint32(dst[i:])))))
	}
	return nil
}

// Codes implements [packed.Elements].
func (m moved) Codes(dst quantize.Blocks, begin, count int64) error {
	groups, one := m.width/int64(m.format.Group()), m.format.GroupSizes(m.scales)
	sizes := []int64{groups * int64(one.Packed), groups * int64(one.Scales), groups * int64(one.Biases)}
	parts := [][]byte{dst.Packed, dst.Scales, dst.Biases}
	return m.gather(parts, sizes, begin, count, func(to [][]byte, row, rows int64) error {
		return m.from.Codes(quantize.Blocks{Packed: to[0], Scales: to[1], Biases: to[2]}, row*m.width, rows*m.width)
	})
}

// gather fills the parts of a range of elements, each of which has the given bytes for a row. read reads whole rows of
// the file.
func (m moved) gather(dst [][]byte, sizes []int64, begin, count int64, read func([][]byte, int64, int64) error) error {
	if count == 0 { // a tensor without elements may have rows of none
		return nil
	}
	first, end := begin/m.width, (begin+count+m.width-1)/m.width
	for row := first; row < end; {
		lo, n := m.span(row, end)
		buf := allocate(sizes, m.extent(row, n))
		if err := read(buf, lo, m.extent(row, n)); err != nil {
			return err
		}
		for i := range n {
			at := m.row(row+i) - lo
			// The part of the row that is wanted, in elements.
			from, to := max(begin-(row+i)*m.width, 0), min(begin+count-(row+i)*m.width, m.width)
			for p, size := range sizes {
				line := buf[p][at*size : (at+1)*size]
				if m.columns != nil {
					line = m.reorder(line)
				}
				copy(dst[p][((row+i)*m.width+from-begin)*size/m.width:], line[from*size/m.width:to*size/m.width])
			}
		}
		row += n
	}
	return nil
}

func (m moved) row(i int64) int64 {
	if m.rows == nil {
		return i
	}
	return m.rows[i]
}

// span returns how many rows from row on are read at once: as long as they lie in a range of the file that is at most
// twice as large. lo is the first row of that range.
func (m moved) span(row, end int64) (lo, n int64) {
	lo, hi := m.row(row), m.row(row)
	for n = 1; row+n < end && n < maxRows; n++ {
		l, h := min(lo, m.row(row+n)), max(hi, m.row(row+n))
		if h-l+1 > 2*(n+1) {
			break
		}
		lo, hi = l, h
	}
	return lo, n
}

// maxRows bounds the rows that are read at once.
const maxRows = 256

// extent returns the size of the range of the file that holds n rows from row on.
func (m moved) extent(row, n int64) int64 {
	lo, hi := m.row(row), m.row(row)
	for i := range n {
		lo, hi = min(lo, m.row(row+i)), max(hi, m.row(row+i))
	}
	return hi - lo + 1
}

// reorder returns a row with its blocks in order.
func (m moved) reorder(line []byte) []byte {
	out := make([]byte, len(line))
	one := int64(len(line)) * m.size / m.width
	for i, from := range m.columns {
		copy(out[int64(i)*one:(int64(i)+1)*one], line[from*one:])
	}
	return out
}

func allocate(sizes []int64, rows int64) [][]byte {
	out := make([][]byte, len(sizes))
	for i, size := range sizes {
		out[i] = make([]byte, rows*size)
	}
	return out
}
