package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/quantize"
)

// coder encodes batches of elements into the arrays of a blob. It is immutable, so batches may be encoded concurrently.
type coder struct {
	layout  layout
	add     float64 // added to each element unless 0; the target is then float32
	sources []io.ReaderAt
	coded   []sources.Elements // used instead of sources if some of them are quantized
	row     int64              // elements per row of coded
}

// batch returns the number of elements that fit a slab together with all their results.
func (c coder) batch() int64 {
	l := c.layout
	if l.target == 0 {
		return slabSize / l.width
	}
	group := int64(max(l.target.Group(), 1))
	n := slabSize / c.groupBytes() * group
	if l.keep || l.floats {
		return c.wholeRows(n)
	}
	// Align writes to file system blocks: those of packed elements, and those of the smaller arrays too if a slab has
	// room.
	const block = 4 << 10
	for _, whole := range []int64{block / max(int64(l.target.GroupSizes(l.coded()).Scales), 1) * group, 1 << 10} {
		if n >= whole {
			return n - n%whole
		}
	}
	return n
}

// wholeRows returns at most n elements, in whole rows if rows are short.
func (c coder) wholeRows(n int64) int64 {
	if c.row <= sources.MaxRow {
		return n - n%c.row
	}
	return n - n%128
}

// groupBytes returns the bytes that a group needs in a slab.
func (c coder) groupBytes() int64 {
	l := c.layout
	out := l.target.GroupSizes(l.coded())
	n := l.width*int64(max(l.target.Group(), 1)) + int64(out.Packed+out.Scales+out.Biases)
	if l.middle != "" {
		n += int64(out.Source)
	}
	if l.stored != "" {
		n += int64(2 * l.stored.Size())
	}
	return n
}

// coded returns the type of the elements that the last step quantizes or casts.
func (l layout) coded() quantize.DType {
	if l.middle != "" {
		return l.middle
	}
	return l.source
}

// run reads and encodes a batch in one slab.
func (c coder) run(slab []byte, batch []sourceRange) (quantize.Blocks, error) {
	l := c.layout
	if l.keep {
		return c.readCodes(slab, batch)
	}
	n := countOf(batch)
	in, rest := split(slab, n*l.width)
	read := func() error { return readBatch(in, batch, c.sources, l.width) }
	if l.floats {
		read = func() error { return c.readFloats(in, batch) }
	}
	if err := read(); err != nil {
		return quantize.Blocks{}, err
	}
	if l.target == 0 {
		return quantize.Blocks{Packed: in}, nil
	}
	from := l.source
	if l.middle != "" {
		var middle []byte
		middle, rest = split(rest, n*int64(l.middle.Size()))
		if err := castTo[l.middle].Encode(quantize.Blocks{Packed: middle}, in, from); err != nil {
			return quantize.Blocks{}, err
		}
		in, from = middle, l.middle
	}
	out, rest := c.blocks(rest, n, from)
	err := l.target.Encode(out, in, from)
	if c.add != 0 {
		addF32(out.Packed, float32(c.add))
	}
	if l.stored == "" || err != nil {
		return out, err
	}
	for _, p := range []*[]byte{&out.Scales, &out.Biases} {
		var narrow []byte
		narrow, rest = split(rest, int64(len(*p)/from.Size()*l.stored.Size()))
		if err := castTo[l.stored].Encode(quantize.Blocks{Packed: narrow}, *p, from); err != nil {
			return out, fmt.Errorf("a scale is out of range for %s: %w", l.stored, err)
		}
		*p = narrow
	}
	return out, nil
}

// blocks allocates the arrays for n encoded elements in a slab.
func (c coder) blocks(slab []byte, n int64, from quantize.DType) (out quantize.Blocks, rest []byte) {
	sizes := c.layout.target.GroupSizes(from)
	groups := n / int64(max(c.layout.target.Group(), 1))
	out.Packed, rest = split(slab, groups*int64(sizes.Packed))
	out.Scales, rest = split(rest, groups*int64(sizes.Scales))
	out.Biases, rest = split(rest, groups*int64(sizes.Biases))
	return out, rest
}

// castTo maps an element type to the cast that produces it.
var castTo = map[quantize.DType]quantize.Type{
	quantize.BF16: quantize.ToBF16, quantize.F16: quantize.ToF16, quantize.F32: quantize.ToF32,
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
func locate(err error, batch []sourceRange, t Tensor) error {
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
	return fmt.Errorf("%s: tensor %s: %w", s.weight.path, s.Name, err)
}
