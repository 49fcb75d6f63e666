package packed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// bitsandbytes stores a tensor of 4 bits as X (U8 [n/2, 1], two codes to a byte, the first in its upper half) with
// X.quant_state.bitsandbytes__nf4 or __fp4, bytes of JSON with the tensor's shape, X.absmax, a scale for each block of
// consecutive elements, and X.quant_map, the values of the codes. X may be declared as a type of several bytes. With
// double quantization, X.absmax has codes of 8 bits for the values in X.nested_quant_map, X.nested_absmax has a scale
// for each block of them, and the JSON has an offset. A linear layer of 8 bits is X.weight (I8 [out, in]) with X.SCB,
// the largest absolute value of each row, which is 127.
// https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.50.2/bitsandbytes/functional.py (QuantState)
// https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.50.2/bitsandbytes/nn/modules.py (Linear8bitLt)

const bnbState = ".quant_state.bitsandbytes__"

// bnbParts are the other tensors of one of 4 bits.
var bnbParts = []string{".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"}

// bnbValues are the values of codes. bitsandbytes has them in its kernels, so that those in a file have no influence.
var bnbValues = map[string][16]float32{
	"nf4": {
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
		-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
		0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	},
	"fp4": {
		0, 0.0625 / 12.0, 8.0 / 12.0, 1, 4.0 / 12.0, 0.5, 2.0 / 12.0, 0.25,
		0, -0.0625 / 12.0, -8.0 / 12.0, -1, -4.0 / 12.0, -0.5, -2.0 / 12.0, -0.25,
	},
}

func findBitsAndBytes(c *Checkpoint) (Found, error) {
	var f Found
	var eight []Weight
	kinds := map[string]int{}
	named := strings.HasPrefix(c.method(), "bitsandbytes")
	dtype := c.plainType()
	for _, t := range c.Tensors() {
		name, kind, four := strings.Cut(t.Name, bnbState)
		layer, linear := strings.CutSuffix(t.Name, ".weight")
		_, scaled := c.Lookup(layer + ".SCB")
		switch {
		case four:
			w, err := c.bnb4(name, kind, t)
			if err != nil {
				return f, err
			}
			kinds[w.Format]++
			f.Weights = append(f.Weights, w)
		case linear && t.DType == safetensors.I8 && (named || scaled):
			m, err := c.bnb8(layer, t, dtype)
			if err != nil {
				return f, err
			}
			kinds[m.Format]++
			eight = append(eight, m)
		}
	}
	if err := c.bnbOrphans(named || len(f.Weights) > 0); err != nil || len(f.Weights)+len(eight) == 0 {
		return f, err
	}
	if err := c.finishWeights(eight); err != nil {
		return f, err
	}
	for i, w := range eight {
		eight[i].Read = bnbRows{w.Read.(*grid), w.Parts[1]}
	}
	f.Weights = append(f.Weights, eight...)
	f.What = counted(kinds)
	if named {
		f.From = append(f.From, fmt.Sprintf("config.json %s.quant_method = %q", c.hfKey, c.method()))
	}
	first := f.Weights[0].Parts
	f.From = append(f.From,
		fmt.Sprintf("%s (%s %v) with %s", first[0].Name, first[0].DType, first[0].Shape, first[1].Name))
	return f, nil
}

// bnbOrphans returns an error for codes of 4 bits, or their scales, without what describes them.
func (c *Checkpoint) bnbOrphans(isBnB bool) error {
	for _, t := range c.Tensors() {
		name := t.Name
		column := len(t.Shape) == 2 && t.Shape[1] == 1 && t.Shape[0] > 1
		codes := isBnB && (column || t.DType == safetensors.U8) && strings.HasSuffix(name, ".weight")
		for _, part := range bnbParts {
			if base, ok := strings.CutSuffix(t.Name, part); ok && !strings.HasSuffix(base, ".nested") {
				name, codes = base, true
			}
		}
		if !codes {
			continue
		}
		if _, ok := c.Lookup(name + bnbState + "nf4"); ok {
			continue
		}
		if _, ok := c.Lookup(name + bnbState + "fp4"); ok {
			continue
		}
		return wrong(t, "it belongs to codes of bitsandbytes, but %s%snf4 (or fp4) with their shape is missing; "+
			"download the checkpoint again, or save it with bitsandbytes 0.41.3 or later", name, bnbState)
	}
	return nil
}

// bnbJSON is what the quant_state of a tensor says.
type bnbJSON struct {
	Block  int64   `json:"blocksize"`
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Nested int64   `json:"nested_blocksize"`
	Offset float64 `json:"nested_offset"`
}

// maxState bounds the JSON of a tensor.
const maxState = 64 << 10

// bnb4 reads the headers of a tensor of 4 bits.
func (c *Checkpoint) bnb4(name, kind string, state safetensors.Source) (Weight, error) {
	values, ok := bnbValues[kind]
	if !ok {
		return Weight{}, wrong(state, "bitsandbytes has no type %q that this version knows, want nf4 or fp4; %s",
			kind, usePlain)
	}
	codes, ok := c.Lookup(name)
	if !ok {
		return Weight{}, wrong(state, "it describes %s, which is missing; download the checkpoint again", name)
	}
	q, err := readState(state)
	if err != nil {
		return Weight{}, err
	}
	w := Weight{
		Name: name, Shape: q.Shape, Parts: []safetensors.Source{codes, state}, Plain: true,
		Format: fmt.Sprintf("bitsandbytes %s, blocks of %d", kind, q.Block), Why: "no type here has codes of " + kind,
	}
	w.DType, ok = map[string]safetensors.DType{
		"bfloat16": safetensors.BF16, "float16": safetensors.F16, "float32": safetensors.F32,
	}[q.DType]
	n := numbers.Count(q.Shape)
	if !ok || q.Block < 1 || len(q.Shape) == 0 || n < 1 || q.Nested < 0 {
		return w, wrong(state, "it says dtype %q, blocksize %d, shape %v; download the checkpoint again",
			q.DType, q.Block, q.Shape)
	}
	read := bnbBlocks{codes: codes, values: values, block: q.Block, nested: max(q.Nested, 1), offset: float32(q.Offset)}
	blocks := (n + q.Block - 1) / q.Block
	if size := codes.Size(); size < (n+1)/2 || size > (n+1)/2+8 { // several bytes may be one element
		return w, wrong(codes, "it has %d bytes, but the shape %v of %s takes %d; download the checkpoint again",
			size, q.Shape, state.Name, (n+1)/2)
	}
	part := func(end string, into *safetensors.Source, count int64, types ...safetensors.DType) error {
		t, ok := c.Lookup(name + end)
		if !ok {
			return wrong(codes, "it holds codes of bitsandbytes, but %s is missing; download the checkpoint again", name+end)
		}
		if numbers.Count(t.Shape) != count || !slices.Contains(types, t.DType) {
			return wrong(t, "it is %s %v, want %d of %v; download the checkpoint again", t.DType, t.Shape, count, types)
		}
		w.Parts, *into = append(w.Parts, t), t
		return nil
	}
	wide := []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16}
	if _, nested := c.Lookup(name + ".nested_absmax"); nested || q.Nested > 0 {
		w.Format += ", double quantization"
		err = part(".absmax", &read.scales, blocks, safetensors.U8)
		if err == nil {
			err = part(".nested_absmax", &read.outer, (blocks+read.nested-1)/read.nested, wide...)
		}
		if err == nil {
			err = part(".nested_quant_map", &read.outerMap, 256, wide...)
		}
	} else {
		err = part(".absmax", &read.scales, blocks, wide...)
	}
	if err != nil {
		return w, err
	}
	if t, ok := c.Lookup(name + ".quant_map"); ok {
		w.Parts = append(w.Parts, t)
	}
	w.Read = read
	return w, nil
}

func readState(state safetensors.Source) (q bnbJSON, err error) {
	if state.DType != safetensors.U8 || state.Size() > maxState {
		return q, wrong(state, "it is %s %v, want JSON as U8, up to %d bytes; download the checkpoint again",
			state.DType, state.Shape, maxState)
	}
	raw := make([]byte, state.Size())
	if err := numbers.ReadAt(state, raw, 0); err != nil {
		return q, wrong(state, "%w", err)
	}
	if err := pyjson.Unmarshal(raw, &q); err != nil {
		return q, wrong(state, "it is not the JSON of a quant_state (%w); download the checkpoint again", err)
	}
	for _, d := range q.Shape {
		if d < 1 || d > 1<<40 || numbers.Count(q.Shape) > 1<<48 {
			return q, wrong(state, "it has shape %v; download the checkpoint again", q.Shape)
		}
	}
	return q, nil
}

// bnbBlocks reads a tensor of 4 bits.
type bnbBlocks struct {
	codes    safetensors.Source
	scales   safetensors.Source
	outer    safetensors.Source // scales of the scales; if File is nil, there are none
	outerMap safetensors.Source
	values   [16]float32
	block    int64
	nested   int64 // scales in a block of scales
	offset   float32
}

// Floats implements [Elements].
func (b bnbBlocks) Floats(dst []byte, begin, count int64) error {
	first := begin / b.block
	scales, err := b.scale(first, (begin+count+b.block-1)/b.block-first)
	if err != nil {
		return err
	}
	packed := make([]byte, (begin+count+1)/2-begin/2)
	if err := numbers.ReadAt(b.codes, packed, begin/2); err != nil {
		return err
	}
	for i := range count {
		at := begin + i
		code := packed[at/2-begin/2] >> (4 * (1 - at%2)) & 15
		numbers.Put(dst, int(i), b.values[code]*scales[at/b.block-first])
	}
	return nil
}

// scale returns n scales from the one of block first.
func (b bnbBlocks) scale(first, n int64) ([]float32, error) {
	out := make([]float32, n)
	if b.outer.File == nil {
		return out, numbers.Some(b.scales, out, first)
	}
	codes := make([]byte, n)
	if err := numbers.ReadAt(b.scales, codes, first); err != nil {
		return nil, err
	}
	values := make([]float32, 256)
	if err := numbers.Some(b.outerMap, values, 0); err != nil {
		return nil, err
	}
	from := first / b.nested
	outer := make([]float32, (first+n+b.nested-1)/b.nested-from)
	if err := numbers.Some(b.outer, outer, from); err != nil {
		return nil, err
	}
	for i, code := range codes {
		// Two roundings, as in bitsandbytes: the product is not fused with the sum.
		out[i] = float32(values[code]*outer[(first+int64(i))/b.nested-from]) + b.offset
	}
	return out, nil
}

// Codes implements [Elements].
func (b bnbBlocks) Codes(quantize.Blocks, int64, int64) error {
	return wrong(b.codes, "no type here has its codes")
}
