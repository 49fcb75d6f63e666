package adapter

import (
	"encoding/binary"
	"math"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Merged returns a reader of a weight [out, in] with an adapter's product added.
func Merged(base packed.Elements, d Delta) packed.Elements { return merged{base, d} }

type merged struct {
	base packed.Elements
	Delta
}

// ranksPerPass is the number of ranks added in one pass over a row.
const ranksPerPass = 4

// Floats implements packed.Elements.
func (m merged) Floats(dst []byte, begin, count int64) error {
	if err := m.base.Floats(dst, begin, count); err != nil || count == 0 {
		return err
	}
	cols := m.A.Shape[1]
	first, last := begin/cols, (begin+count-1)/cols
	lo, hi := int64(0), cols
	if first == last {
		lo = begin - first*cols
		hi = lo + count
	}
	b, err := floats(m.B, (m.Begin+first)*m.Rank, (last-first+1)*m.Rank)
	if err != nil {
		return err
	}
	sum := make([]float32, count)
	var a [ranksPerPass][]float32
	zero := make([]float32, hi-lo)
	for k := int64(0); k < m.Rank; k += ranksPerPass {
		for i := range a {
			a[i] = zero
			if k+int64(i) < m.Rank {
				if a[i], err = floats(m.A, (k+int64(i))*cols+lo, hi-lo); err != nil {
					return err
				}
			}
		}
		for row := first; row <= last; row++ {
			from, to := max(row*cols+lo, begin), min(row*cols+hi, begin+count)
			var f [ranksPerPass]float32
			copy(f[:], b[(row-first)*m.Rank+k:(row-first+1)*m.Rank])
			c := from - row*cols - lo
			n := to - from
			accumulate(sum[from-begin:to-begin], f, a[0][c:c+n], a[1][c:c+n], a[2][c:c+n], a[3][c:c+n])
		}
	}
	for i, s := range sum {
		w := math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:]))
		// The conversion prevents a fused multiply-add, which would round differently on some processors.
		by := float32(m.Scale * s)
		if !finite(by) {
			return wrong(m.A, "with lora_B and the scale %g it adds %g to element %d of the weight; the adapter is damaged",
				m.Scale, by, begin+int64(i))
		}
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(w+by))
	}
	return nil
}

// accumulate adds four products to each element.
func accumulate(sum []float32, f [ranksPerPass]float32, a0, a1, a2, a3 []float32) {
	n := len(sum)
	a0, a1, a2, a3 = a0[:n], a1[:n], a2[:n], a3[:n]
	for i := range sum {
		x := float32(f[0]*a0[i]) + float32(f[1]*a1[i])
		y := float32(f[2]*a2[i]) + float32(f[3]*a3[i])
		sum[i] += x + y
	}
}

// Codes is never called: a merged weight has no codes.
func (m merged) Codes(quantize.Blocks, int64, int64) error {
	return wrong(m.A, "a merged weight has no codes")
}

func floats(t safetensors.Source, begin, count int64) ([]float32, error) {
	buf := make([]byte, 4*count)
	if err := (elements{t}).Floats(buf, begin, count); err != nil {
		return nil, err
	}
	return quantize.Float32s(buf, quantize.F32)
}

// Elements reads an adapter's tensor. An element that is not finite is an error that names it.
func Elements(t safetensors.Source) packed.Elements { return elements{t} }

type elements struct{ t safetensors.Source }

// Floats implements packed.Elements.
func (e elements) Floats(dst []byte, begin, count int64) error {
	if err := packed.PlainElements(e.t).Floats(dst, begin, count); err != nil {
		// %v keeps the error from being taken for one about an element of the base model's tensor.
		return wrong(e.t, "from element %d on: %v", begin, err)
	}
	for i := range count {
		if v := math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:])); !finite(v) {
			return wrong(e.t, "element %d is %g; the adapter is damaged", begin+i, v)
		}
	}
	return nil
}

// Codes is never called: an adapter's tensor has no codes.
func (e elements) Codes(quantize.Blocks, int64, int64) error { return wrong(e.t, "it has no codes") }

func finite(v float32) bool { return v-v == 0 }
