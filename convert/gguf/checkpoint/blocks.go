package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
)

var le = binary.LittleEndian

// reader returns a reader of a tensor's elements, in the order of the file.
func reader(t tensor) packed.Elements {
	if plainType(t.Type) {
		return packed.PlainElements(t.source)
	}
	return blocks{tensor: t}
}

// worst is the largest rounding error of any element so far.
type worst struct{ bits atomic.Uint64 }

func (w *worst) add(v float64) {
	for {
		old := w.bits.Load()
		if v <= math.Float64frombits(old) || w.bits.CompareAndSwap(old, math.Float64bits(v)) {
			return
		}
	}
}

func (w *worst) get() float64 { return math.Float64frombits(w.bits.Load()) }

// blocks reads a tensor of a type with blocks.
type blocks struct {
	tensor
	scales quantize.DType // of affine codes
	global float32        // factor of the whole tensor; 0 = none
	each   []float32      // factors along the first dimension; nil = none
	worst  *worst
}

// read returns the blocks that hold a range of elements, and the number of elements before and in them.
func (b blocks) read(begin, count int64) (raw []byte, skip, n int64, err error) {
	block, size := b.Type.Block()
	e := int64(block)
	first, end := begin/e, (begin+count+e-1)/e
	raw = make([]byte, (end-first)*int64(size))
	if k, err := b.source.Reader().ReadAt(raw, first*int64(size)); k != len(raw) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, 0, err
	}
	return raw, begin - first*e, (end - first) * e, nil
}

// Floats implements [packed.Elements].
func (b blocks) Floats(dst []byte, begin, count int64) error {
	raw, skip, n, err := b.read(begin, count)
	if err != nil {
		return err
	}
	out := make([]float32, n)
	if err := b.Type.Decode(out, raw); err != nil {
		return b.wrap(err)
	}
	out = out[skip : skip+count]
	if b.global != 0 {
		for i := range out {
			out[i] *= b.global
		}
	}
	if b.each != nil {
		one := elements(b.Shape) / int64(len(b.each))
		for i := range out {
			out[i] *= b.each[(begin+int64(i))/one]
		}
	}
	for i, x := range out {
		le.PutUint32(dst[4*i:], math.Float32bits(x))
	}
	return nil
}

// Codes implements [packed.Elements].
func (b blocks) Codes(dst quantize.Blocks, begin, count int64) error {
	raw, skip, n, err := b.read(begin, count)
	if err != nil {
		return err
	}
	c, _ := b.Type.Codes()
	size, group := c.Format.GroupSizes(b.scales), int64(c.Format.Group())
	to := dst
	if n != count {
		to = c.Format.NewBlocks(b.scales, int(n/group))
	}
	rounded, err := b.Type.Recode(to, b.scales, raw)
	if err != nil {
		return b.wrap(err)
	}
	if b.worst != nil {
		b.worst.add(rounded)
	}
	if n != count {
		at := int(skip / group)
		copy(dst.Packed, to.Packed[at*size.Packed:])
		copy(dst.Scales, to.Scales[at*size.Scales:])
		copy(dst.Biases, to.Biases[at*size.Biases:])
	}
	return nil
}

func (b blocks) wrap(err error) error {
	if errors.Is(err, ggml.ErrRange) {
		err = fmt.Errorf("%w: the file is damaged, or needs --exact", err)
	}
	return fmt.Errorf("%s: tensor %s: %w: %w", b.source.File.Path(), b.Name, packed.ErrSource, err)
}
