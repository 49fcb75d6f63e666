package packed

import (
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// fp8Weight reads a weight: one matrix or a stack of matrices (one per expert), each with a grid of scales.
type fp8Weight struct {
	codes, scales safetensors.Source
	table         *[256]float32
	rows, in      int64 // of a matrix
	bh, bw        int64 // height and width of a block
	ob, ib        int64 // blocks of a matrix, vertically and horizontally
}

// granularity describes the extent of a scale for messages.
func (e fp8Weight) granularity() string {
	switch {
	case e.ob == 1 && e.ib == 1 && len(e.codes.Shape) == 3 && numbers.Count(e.scales.Shape) > 1:
		return "a scale per expert"
	case e.ob == 1 && e.ib == 1:
		return "a scale per tensor"
	case e.bh == 1 && e.ib == 1:
		return "a scale per row"
	}
	return fmt.Sprintf("blocks of %d x %d", e.bh, e.bw)
}

// findBlocks determines the block size from the shapes of the weight and its scales.
func (e *fp8Weight) findBlocks(f fp8Config) error {
	shape, have := e.codes.Shape, e.scales.Shape
	n := len(shape)
	e.rows, e.in = shape[n-2], shape[n-1]
	grid := func(bh, bw int64) bool {
		e.bh, e.bw = bh, bw
		e.ob, e.ib = (e.rows+bh-1)/bh, (e.in+bw-1)/bw
		return slices.Equal(have, append(slices.Clone(shape[:n-2]), e.ob, e.ib))
	}
	for _, b := range f.blocks {
		if grid(b[0], b[1]) {
			return nil
		}
	}
	if isPower(e.scales.DType) && !f.strict && grid(1, 32) { // mxfp8
		return nil
	}
	if f.strict {
		return wrong(e.scales, "it has shape %v, but the scales of %s %v in blocks of %d x %d (config.json %s) are %v; "+
			"correct the configuration, or download the checkpoint again",
			have, e.codes.Name, shape, e.bh, e.bw, f.sizeKey, append(slices.Clone(shape[:n-2]), e.ob, e.ib))
	}
	if numbers.Count(have) == 1 {
		e.rows = numbers.Count(shape) / e.in // one scale for all experts, too
		grid(e.rows, e.in)
		return nil
	}
	bank := shape[:n-2]
	for _, row := range [][]int64{append(slices.Clone(shape[:n-1]), 1), shape[:n-1]} {
		if slices.Equal(have, row) {
			grid(1, e.in)
			return nil
		}
	}
	perExpert := func(s []int64) bool { return slices.Equal(have, s) }
	if len(bank) == 1 && slices.ContainsFunc([][]int64{{bank[0]}, {bank[0], 1}, {bank[0], 1, 1}}, perExpert) {
		grid(e.rows, e.in)
		return nil
	}
	if len(f.blocks) == 0 && !f.stated && len(have) == n && slices.Equal(have[:n-2], bank) {
		// Try the usual block size, then one that divides the matrix evenly.
		ob, ib := have[n-2], have[n-1]
		if grid(128, 128) || ob > 0 && ib > 0 && e.rows%ob == 0 && e.in%ib == 0 && grid(e.rows/ob, e.in/ib) {
			return nil
		}
	}
	return wrong(e.scales, "it has shape %v, which matches %s %v neither as a scale of the tensor, nor of each row, "+
		"nor of blocks (config.json %s); correct the configuration, or download the checkpoint again",
		have, e.codes.Name, shape, orNone(f.sizeKey))
}

func orNone(key string) string {
	if key == "" {
		return "has no block size"
	}
	return "has " + key
}

// scaleObstacle returns the reason that mxfp8 cannot represent the scales, or "". It stops at the first one that is not
// a power of two.
func (e fp8Weight) scaleObstacle() (why string, err error) {
	total := numbers.Count(e.scales.Shape)
	var buf [1024]float32
	for at := int64(0); at < total; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), total-at)]
		if err := e.readScales(part, at); err != nil {
			return "", err
		}
		for i, s := range part {
			switch {
			case math.IsNaN(float64(s)) || math.IsInf(float64(s), 0):
				return "", wrong(e.scales, "element %d is %v: the file is damaged; download the checkpoint again", at+int64(i), s)
			case !isPowerOfTwo(s):
				return "its scales are no powers of two, which those of mxfp8 are", nil
			}
		}
	}
	return "", nil
}

// isPowerOfTwo reports whether E8M0 represents a number: 2^-127, which is subnormal in float32, to 2^127.
func isPowerOfTwo(s float32) bool {
	b := math.Float32bits(s)
	return b == 1<<22 || b != 0 && b&0x807fffff == 0
}

// exponent returns the E8M0 code of a power of two.
func exponent(s float32) byte { return byte(math.Float32bits(s) >> 23) }

func (e fp8Weight) readScales(dst []float32, at int64) error {
	width := int64(e.scales.DType.Bits() / 8)
	buf := make([]byte, int64(len(dst))*width)
	if err := numbers.ReadAt(e.scales, buf, at*width); err != nil {
		return err
	}
	return numbers.Floats(dst, e.scales.DType, buf)
}

// gridRow returns the row in the grid of scales for a row of the weight.
func (e fp8Weight) gridRow(row int64) int64 { return row/e.rows*e.ob + row%e.rows/e.bh }

// each calls fn for consecutive ranges of elements with the same scale.
func (e fp8Weight) each(begin, count int64, fn func(at, n int64, scale float32)) error {
	if count == 0 {
		return nil
	}
	first := e.gridRow(begin / e.in)
	last := e.gridRow((begin + count - 1) / e.in)
	scales := make([]float32, (last-first+1)*e.ib)
	if err := e.readScales(scales, first*e.ib); err != nil {
		return err
	}
	for at := int64(0); at < count; {
		row, col := (begin+at)/e.in, (begin+at)%e.in
		n := min(e.bw-col%e.bw, e.in-col, count-at)
		fn(at, n, scales[(e.gridRow(row)-first)*e.ib+col/e.bw])
		at += n
	}
	return nil
}

func (e fp8Weight) Floats(dst []byte, begin, count int64) error {
	codes := dst[3*count:] // the tail of dst: a float is written only after its code is read
	if err := numbers.ReadAt(e.codes, codes, begin); err != nil {
		return err
	}
	return e.each(begin, count, func(at, n int64, scale float32) {
		out, table := dst[4*at:4*(at+n)], e.table
		for i, code := range codes[at : at+n] {
			le.PutUint32(out[4*i:4*i+4], math.Float32bits(table[code]*scale))
		}
	})
}

func (e fp8Weight) Codes(dst quantize.Blocks, begin, count int64) error {
	if err := numbers.ReadAt(e.codes, dst.Packed, begin); err != nil {
		return err
	}
	for i, code := range dst.Packed {
		if code&0x7f == 0x7f {
			return &quantize.ElementError{Index: int64(i), Value: math.NaN(), Err: quantize.ErrNotFinite}
		}
	}
	const group = 32
	return e.each(begin, count, func(at, n int64, scale float32) {
		for g := at / group; g < (at+n)/group; g++ {
			dst.Scales[g] = exponent(scale)
		}
	})
}
