package packed

import (
	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/safetensors"
)

// transposed reads a matrix that is stored transposed, as by AutoGPTQ and AutoAWQ: codes, scales [groups, out] and zero
// points [groups, out], all with the weight's rows along the last dimension.
type transposed struct {
	columns, rows int64
	groups        int64
	bits          int
	weight        safetensors.Source
	scales        safetensors.Source
	zeros         safetensors.Source // if File is nil, all zero points are midpoint
	midpoint      float32
	shift         uint32 // added to each stored zero point, with wrap-around
	along         bool   // a word holds codes of adjacent columns of one row; otherwise, of adjacent rows
	lane          []int  // if not along: the position of row i in its word
}

// readWords reads words [begin, end) of a line of a tensor with width 32-bit words per line.
func readWords(t safetensors.Source, buf []byte, line, width, begin, end int64) error {
	return numbers.ReadAt(t, buf[:4*(end-begin)], 4*(line*width+begin))
}

func (m transposed) codes(dst []uint8, row, rows int64) error {
	if m.along {
		return m.down(dst, row, rows)
	}
	return m.across(m.weight, m.columns, row, rows, func(c, r int64, code uint32) { dst[r*m.columns+c] = uint8(code) })
}

// down unpacks vertically adjacent words, which form a bit stream for each row of the weight.
func (m transposed) down(dst []uint8, row, rows int64) error {
	lines := m.columns * int64(m.bits) / 32
	buf := make([]byte, 4*rows)
	rest, have, next := make([]uint64, rows), 0, int64(0)
	mask := uint64(1)<<m.bits - 1
	for line := range lines {
		if err := readWords(m.weight, buf, line, m.rows, row, row+rows); err != nil {
			return err
		}
		n := (have + 32) / m.bits
		for r := range rows {
			word := rest[r] | uint64(le.Uint32(buf[4*r:]))<<have
			for k := range int64(n) {
				dst[r*m.columns+next+k] = uint8(word & mask)
				word >>= m.bits
			}
			rest[r] = word
		}
		next += int64(n)
		have = have + 32 - n*m.bits
	}
	return nil
}

// across unpacks lines whose words hold codes of adjacent rows of the weight.
func (m transposed) across(t safetensors.Source, lines, row, rows int64, f func(line, r int64, code uint32)) error {
	width := m.rows * int64(m.bits) / 32
	begin, end := row*int64(m.bits)/32, min(((row+rows)*int64(m.bits)+31)/32, width)
	buf := make([]byte, 4*(end-begin)+8)
	mask := uint64(1)<<m.bits - 1
	per := int64(len(m.lane))
	for line := range lines {
		if err := readWords(t, buf, line, width, begin, end); err != nil {
			return err
		}
		for r := range rows {
			bit := (row+r)*int64(m.bits) - 32*begin
			if per > 0 {
				bit = 32*((row+r)/per-begin) + int64(m.lane[(row+r)%per]*m.bits)
			}
			f(line, r, uint32(le.Uint64(buf[bit/32*4:])>>(bit%32)&mask))
		}
	}
	return nil
}

func (m transposed) params(scales, zeros []float32, row, rows int64) error {
	width := int64(m.scales.DType.Bits() / 8)
	buf, line := make([]byte, rows*width), make([]float32, rows)
	for g := range m.groups {
		if err := numbers.ReadAt(m.scales, buf, (g*m.rows+row)*width); err != nil {
			return err
		}
		if err := numbers.Floats(line, m.scales.DType, buf); err != nil {
			return err
		}
		for r, s := range line {
			scales[int64(r)*m.groups+g] = s
		}
	}
	if m.zeros.File == nil {
		for i := range zeros {
			zeros[i] = m.midpoint
		}
		return nil
	}
	mask := uint32(1)<<m.bits - 1
	return m.across(m.zeros, m.groups, row, rows, func(g, r int64, code uint32) {
		zeros[r*m.groups+g] = float32((code + m.shift) & mask)
	})
}
