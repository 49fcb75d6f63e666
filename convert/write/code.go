package write

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/weighted"
)

// coder encodes batches of elements into the arrays of a blob. It is immutable, so batches may be encoded concurrently.
type coder struct {
	coding  plan.Coding
	add     float64 // added to each element unless 0; the target is then float32
	sources []io.ReaderAt
	coded   []packed.Elements // used instead of sources if some of them are quantized
	row     int64             // elements per row of coded
	// of a calibrated tensor: for each of its matrices, which have matrix elements in rows of columns
	calibrated      []*weighted.Coder
	columns, matrix int64
}

// batch returns the number of elements that fit a slab together with all their results.
func (c coder) batch() int64 {
	l := c.coding
	if l.Target == 0 {
		return slabSize / l.Width
	}
	group := int64(max(l.Target.Group(), 1))
	n := slabSize / c.groupBytes() * group
	if c.calibrated != nil {
		return n - n%c.columns
	}
	if l.Keep || l.Floats {
		return c.wholeRows(n)
	}
	// Align writes to file system blocks: those of packed elements, and those of the smaller arrays too if a slab has
	// room.
	const block = 4 << 10
	for _, whole := range []int64{block / max(int64(l.Target.GroupSizes(l.Coded()).Scales), 1) * group, 1 << 10} {
		if n >= whole {
			return n - n%whole
		}
	}
	return n
}

// wholeRows returns at most n elements, in whole rows if rows are short.
func (c coder) wholeRows(n int64) int64 {
	if c.row <= packed.MaxRow {
		return n - n%c.row
	}
	return n - n%128
}

// groupBytes returns the bytes that a group needs in a slab.
func (c coder) groupBytes() int64 {
	l := c.coding
	out := l.Target.GroupSizes(l.Coded())
	n := l.Width*int64(max(l.Target.Group(), 1)) + int64(out.Packed+out.Scales+out.Biases)
	if l.Middle != "" {
		n += int64(out.Source)
	}
	if l.Stored != "" {
		n += int64(2 * l.Stored.Size())
	}
	return n
}

// run reads and encodes a batch, which begins at an element of the tensor, in one slab.
func (c coder) run(slab []byte, batch []sourceRange, at int64) (quantize.Blocks, error) {
	l := c.coding
	if l.Keep {
		return c.readCodes(slab, batch)
	}
	n := countOf(batch)
	in, rest := split(slab, n*l.Width)
	read := func() error { return readBatch(in, batch, c.sources, l.Width) }
	if l.Floats {
		read = func() error { return c.readFloats(in, batch) }
	}
	if err := read(); err != nil {
		return quantize.Blocks{}, err
	}
	if l.Target == 0 {
		return quantize.Blocks{Packed: in}, nil
	}
	from := l.Source
	if l.Middle != "" {
		var middle []byte
		middle, rest = split(rest, n*int64(l.Middle.Size()))
		if err := quantize.CastTo(l.Middle).Encode(quantize.Blocks{Packed: middle}, in, from); err != nil {
			return quantize.Blocks{}, err
		}
		in, from = middle, l.Middle
	}
	out, rest := c.blocks(rest, n, from)
	encode := l.Target.Encode
	if c.calibrated != nil {
		encode = func(out quantize.Blocks, in []byte, from quantize.DType) error { return c.calibrate(out, in, from, at) }
	}
	err := encode(out, in, from)
	if c.add != 0 {
		addF32(out.Packed, float32(c.add))
	}
	if l.Stored == "" || err != nil {
		return out, err
	}
	for _, p := range []*[]byte{&out.Scales, &out.Biases} {
		var narrow []byte
		narrow, rest = split(rest, int64(len(*p)/from.Size()*l.Stored.Size()))
		if err := quantize.CastTo(l.Stored).Encode(quantize.Blocks{Packed: narrow}, *p, from); err != nil {
			return out, fmt.Errorf("a scale is out of range for %s: %w", l.Stored, err)
		}
		*p = narrow
	}
	return out, nil
}

// blocks allocates the arrays for n encoded elements in a slab.
func (c coder) blocks(slab []byte, n int64, from quantize.DType) (out quantize.Blocks, rest []byte) {
	sizes := c.coding.Target.GroupSizes(from)
	groups := n / int64(max(c.coding.Target.Group(), 1))
	out.Packed, rest = split(slab, groups*int64(sizes.Packed))
	out.Scales, rest = split(rest, groups*int64(sizes.Scales))
	out.Biases, rest = split(rest, groups*int64(sizes.Biases))
	return out, rest
}

func split(b []byte, n int64) (head, tail []byte) { return b[:n:n], b[n:] }

// addF32 adds a number to each element.
func addF32(b []byte, add float32) {
	for ; len(b) >= 4; b = b[4:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		binary.LittleEndian.PutUint32(b, math.Float32bits(v+add))
	}
}

// locate adds the source tensor, and the element's index in it, to an error about an element of a batch.
func locate(err error, batch []sourceRange, t plan.Tensor) error {
	var at *quantize.ElementError
	if !errors.As(err, &at) {
		return err
	}
	source, i := origin(batch, at.Index)
	if source < 0 || source >= len(t.Sources) {
		return err
	}
	s := t.Sources[source]
	err = &quantize.ElementError{Index: i, Value: at.Value, Err: at.Err}
	name := s.Name
	if s.Tensor.Coded != nil {
		name += " (" + s.Tensor.Format() + ")"
	}
	return fmt.Errorf("%s: tensor %s: %w", s.Tensor.Path, name, err)
}
