package packed

import (
	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// bnb8 reads the headers of a linear layer of 8 bits.
func (c *Checkpoint) bnb8(layer string, t safetensors.Source, d safetensors.DType) (Weight, error) {
	scales, ok := c.Lookup(layer + ".SCB")
	if !ok {
		return Weight{}, wrong(t, "it holds 8-bit codes of bitsandbytes, but %s.SCB is missing; "+
			"download the checkpoint again", layer)
	}
	if len(t.Shape) != 2 || numbers.Count(t.Shape) == 0 {
		return Weight{}, wrong(t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
	}
	rows, columns := t.Shape[0], t.Shape[1]
	if scales.DType != safetensors.F32 || numbers.Count(scales.Shape) != rows {
		return Weight{}, wrong(scales, "it is %s %v, want one F32 for each of %d rows; download the checkpoint again",
			scales.DType, scales.Shape, rows)
	}
	if columns > maxColumns {
		return Weight{}, wrong(t, "rows of %d elements are too long", columns)
	}
	m := Weight{
		Name: t.Name, DType: d, Parts: []safetensors.Source{t, scales}, Format: "bitsandbytes int8, one scale a row",
	}
	if f, ok := c.Lookup(t.Name + "_format"); ok {
		m.Parts = append(m.Parts, f)
		var b [1]byte
		if f.Size() != 1 || !c.HeadersOnly && numbers.ReadAt(f, b[:], 0) != nil || b[0] != 0 {
			return m, wrong(f, "it says that the codes are in an order for one kernel (%d, want 0 for rows); "+
				"save the checkpoint again with bitsandbytes 0.46 or later", b[0])
		}
	}
	g := &grid{
		rows: rows, columns: columns, bits: 8, order: c.consecutiveGroups(columns, columns), inOrder: columns, groups: 1,
		read: bnbBytes{t, scales},
	}
	m.Why, m.Read = g.fit(), g
	m.Plain = g.target == 0
	return m, nil
}

// plainType returns the type that most elements of unpacked tensors have, float16 if there are none.
func (c *Checkpoint) plainType() safetensors.DType {
	best, most := safetensors.F16, int64(0)
	counts := map[safetensors.DType]int64{}
	for _, t := range c.Tensors() {
		if isFloat(t.DType) && len(t.Shape) > 0 {
			counts[t.DType] += numbers.Count(t.Shape)
		}
		if n := counts[t.DType]; n > most {
			best, most = t.DType, n
		}
	}
	return best
}

// bnbBytes reads codes and scales of 8 bits for a grid.
type bnbBytes struct{ codesIn, scales safetensors.Source }

// bnbStep is the value of code 1 if the largest absolute value is 1, as bitsandbytes writes 1/127.
const bnbStep = float32(7.874015718698502e-3)

func (b bnbBytes) codes(dst []uint8, row, rows int64) error {
	if err := numbers.ReadAt(b.codesIn, dst, row*b.codesIn.Shape[1]); err != nil {
		return err
	}
	for i := range dst {
		dst[i] ^= 0x80 // signed
	}
	return nil
}

func (b bnbBytes) params(scales, zeros []float32, row, rows int64) error {
	if err := numbers.Some(b.scales, scales[:rows], row); err != nil {
		return err
	}
	for i := range scales {
		scales[i] *= bnbStep
		zeros[i] = 128
	}
	return nil
}

// bnbRows computes elements in the order of bitsandbytes, whose last bit a product of code and scale need not have.
type bnbRows struct {
	*grid
	largest safetensors.Source
}

// Floats implements [Elements].
func (b bnbRows) Floats(dst []byte, begin, count int64) error {
	first, end := begin/b.columns, (begin+count+b.columns-1)/b.columns
	largest := make([]float32, end-first)
	if err := numbers.Some(b.largest, largest, first); err != nil {
		return err
	}
	at, row := 0, 0
	return b.eachRow(begin, count, func(codes []uint8, _, _ []float32, from, to int64) {
		for _, code := range codes[from:to] {
			numbers.Put(dst, at, float32(float32(int(code)-128)*largest[row])*bnbStep)
			at++
		}
		row++
	})
}

// Codes implements [Elements].
func (b bnbRows) Codes(dst quantize.Blocks, begin, count int64) error {
	return b.grid.Codes(dst, begin, count)
}
