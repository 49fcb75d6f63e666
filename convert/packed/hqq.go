package packed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// HQQ stores a linear layer [out, in] as X.W_q with X.scale and X.zero, numbers that need not be whole, and each of its
// settings as a tensor: X.nbits, X.group_size, X.axis, X.shape and others. The weight is reshaped to [groups,
// group_size] (axis 1) or [group_size, groups] (axis 0), and an element is (code - zero) * scale of its group. Rows of
// that matrix are packed, the first part of them in the highest bits of W_q, the next part below. 5 and 6 bits take
// whole bytes, 3 bits are ten to an int32. W_q may be declared as a type of floats (view_as_float).
// https://github.com/dropbox/hqq/blob/v0.2.8/hqq/core/quantize.py (Quantizer, HQQLinear.state_dict)

// hqqParts are the tensors of a layer that describe it or are its parameters. Those after zero are settings.
var hqqParts = []string{
	"scale", "zero", "nbits", "group_size", "axis", "shape", "packing", "unpack_view_dtype", "view_as_float",
	"quant_scale", "quant_zero", "compute_dtype", "offload_meta", "encoded_state_dict", "stores_quant_config",
	"channel_wise", "optimize", "round_zero",
}

func findHQQ(c *Checkpoint) (Found, error) {
	var f Found
	var list []Weight
	kinds := map[string]int{}
	for _, t := range c.Tensors() {
		layer, ok := strings.CutSuffix(t.Name, ".W_q")
		if !ok {
			continue
		}
		if _, other := c.Lookup(layer + ".orig_shape"); other {
			continue // of GemLite
		}
		w, h, err := c.hqqLayer(layer, t)
		if err != nil {
			return f, err
		}
		kinds[w.Format]++
		if h.across {
			w.Read, w.Plain, w.Why = h, true, "groups across rows (axis 0) have no type here"
			f.Weights = append(f.Weights, w)
			continue
		}
		g := &grid{
			rows: w.Shape[0], columns: w.Shape[1], bits: h.bits, order: c.consecutiveGroups(w.Shape[1], h.group),
			inOrder: h.group, groups: w.Shape[1] / h.group, read: h,
		}
		w.Why, w.Read = g.fit(), g
		w.Plain = g.target == 0
		list = append(list, w)
	}
	if len(list)+len(f.Weights) == 0 {
		return f, nil
	}
	if err := c.finishWeights(list); err != nil {
		return f, err
	}
	f.Weights = append(f.Weights, list...)
	f.What = counted(kinds) + biasNote(list)
	first := f.Weights[0].Parts
	f.From = []string{fmt.Sprintf("%s (%s %v) with %s", first[0].Name, first[0].DType, first[0].Shape, first[1].Name)}
	if c.method() != "" {
		f.From = append([]string{fmt.Sprintf("config.json %s.quant_method = %q", c.hfKey, c.method())}, f.From...)
	}
	return f, nil
}

// hqqWeight reads a layer.
type hqqWeight struct {
	packed      safetensors.Source
	scale, zero safetensors.Source
	bits        int
	field       int   // bits of a code in W_q
	wide        bool  // W_q has int32
	words       int64 // in W_q
	group       int64
	groups      int64 // of the whole weight
	columns     int64
	across      bool // axis 0
}

// hqqLayer reads a layer's headers and settings.
func (c *Checkpoint) hqqLayer(layer string, t safetensors.Source) (Weight, hqqWeight, error) {
	w := Weight{Name: layer + ".weight", Parts: []safetensors.Source{t}}
	h := hqqWeight{packed: t}
	parts := map[string]safetensors.Source{}
	for i, name := range hqqParts {
		p, ok := c.Lookup(layer + "." + name)
		if ok {
			parts[name] = p
			w.Parts = append(w.Parts, p)
		} else if i < 6 {
			return w, h, wrong(t, "it holds codes of HQQ, but %s.%s is missing; download the checkpoint again, or save it with "+
				"hqq 0.2.1 or later", layer, name)
		}
	}
	number := func(name string, n int) ([]int64, error) { return smallInts(parts[name], n) }
	bits, err := number("nbits", 1)
	if parts["nbits"].DType == safetensors.F32 { // 1.58
		bits, err = []int64{2}, nil
	}
	group, err2 := number("group_size", 1)
	axis, err3 := number("axis", 1)
	shape, err4 := number("shape", 2)
	for _, err := range []error{err, err2, err3, err4} {
		if err != nil {
			return w, h, err
		}
	}
	if q, ok := parts["quant_zero"]; ok && !c.HeadersOnly {
		if on, err := smallInts(q, 1); err != nil || on[0] != 0 {
			return w, h, wrong(q, "quantized zero points are not supported; %s", usePlain)
		}
	}
	n := numbers.Count(shape)
	h.scale, h.zero, h.group, h.columns, h.across = parts["scale"], parts["zero"], group[0], shape[1], axis[0] == 0
	h.bits = int(bits[0])
	h.field = map[int]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 8, 6: 8, 8: 8}[h.bits]
	h.wide = h.field == 3
	if h.field == 0 || axis[0] != 0 && axis[0] != 1 || shape[0] < 1 || shape[0] > 1<<32 || shape[1] < 1 ||
		shape[1] > maxColumns || h.group < 1 || n%h.group != 0 {
		return w, h, wrong(t, "HQQ with %d bits, group_size %d, axis %d and shape %v does not exist; "+
			"download the checkpoint again", h.bits, h.group, axis[0], shape)
	}
	h.groups = n / h.group
	w.Shape, w.DType = shape, h.scale.DType
	w.Format = fmt.Sprintf("HQQ %d bits, groups of %d, axis %d", h.bits, h.group, axis[0])
	if !h.across && shape[1]%h.group != 0 {
		return w, h, wrong(t, "its groups of %d cross rows of %d elements; %s", h.group, shape[1], usePlain)
	}
	for _, p := range []safetensors.Source{h.scale, h.zero} {
		if !isFloat(p.DType) || numbers.Count(p.Shape) != h.groups {
			return w, h, wrong(p, "it is %s %v, want a number for each of %d groups; download the checkpoint again",
				p.DType, p.Shape, h.groups)
		}
	}
	return w, h, h.size(n)
}

// size sets the number of words and checks it. The matrix that is packed has as many lines as axis 1 has groups, or as
// a group of axis 0 has elements.
func (h *hqqWeight) size(n int64) error {
	lines, width, per := h.groups, h.group, int64(8/h.field)
	if h.across {
		lines, width = h.group, h.groups
	}
	word := int64(1)
	if h.wide {
		per, word = 10, 4
	}
	h.words = (lines + per - 1) / per * width
	if h.packed.Size() != h.words*word {
		return wrong(h.packed, "it has %d bytes, but %d codes of %d bits in %d lines take %d; download the checkpoint again",
			h.packed.Size(), n, h.bits, lines, h.words*word)
	}
	return nil
}

// smallInts reads a tensor of n integers.
func smallInts(t safetensors.Source, n int) ([]int64, error) {
	width := t.DType.Bits() / 8
	if numbers.Count(t.Shape) != int64(n) || !slices.Contains(
		[]safetensors.DType{safetensors.U8, safetensors.I32, safetensors.I64}, t.DType) {
		return nil, wrong(t, "it is %s %v, want %d integers; download the checkpoint again", t.DType, t.Shape, n)
	}
	raw := make([]byte, n*width)
	if err := numbers.ReadAt(t, raw, 0); err != nil {
		return nil, wrong(t, "%w", err)
	}
	out := make([]int64, n)
	for i := range out {
		switch width {
		case 1:
			out[i] = int64(raw[i])
		case 4:
			out[i] = int64(int32(le.Uint32(raw[4*i:])))
		default:
			out[i] = int64(le.Uint64(raw[8*i:]))
		}
	}
	return out, nil
}

// unpack reads the codes of elements from begin on, in row-major order.
func (h hqqWeight) unpack(dst []uint8, begin int64) error {
	width := int64(1)
	if h.wide {
		width = 4
	}
	top := 8
	if h.wide {
		top = 30
	}
	mask := uint32(1)<<h.field - 1
	raw := make([]byte, int64(len(dst))*width)
	for len(dst) > 0 {
		part, at := begin/h.words, begin%h.words
		n := min(int64(len(dst)), h.words-at)
		if err := numbers.ReadAt(h.packed, raw[:n*width], at*width); err != nil {
			return err
		}
		shift := top - h.field*(int(part)+1)
		for i := range n {
			word := uint32(raw[i*width])
			if h.wide {
				word = le.Uint32(raw[4*i:])
			}
			dst[i] = uint8(word >> shift & mask)
		}
		dst, begin = dst[n:], begin+n
	}
	return nil
}

func (h hqqWeight) codes(dst []uint8, row, rows int64) error {
	return h.unpack(dst[:rows*h.columns], row*h.columns)
}

func (h hqqWeight) params(scales, zeros []float32, row, _ int64) error {
	first := row * (h.columns / h.group)
	if err := numbers.Some(h.scale, scales, first); err != nil {
		return err
	}
	return numbers.Some(h.zero, zeros, first)
}

// Floats implements [Elements] for axis 0, where each element of a line belongs to another group.
func (h hqqWeight) Floats(dst []byte, begin, count int64) error {
	codes := make([]uint8, count)
	if err := h.unpack(codes, begin); err != nil {
		return err
	}
	for i := int64(0); i < count; {
		first := (begin + i) % h.groups
		n := min(count-i, h.groups-first)
		scales, zeros := make([]float32, n), make([]float32, n)
		if err := numbers.Some(h.scale, scales, first); err != nil {
			return err
		}
		if err := numbers.Some(h.zero, zeros, first); err != nil {
			return err
		}
		for k := range n {
			numbers.Put(dst, int(i+k), (float32(codes[i+k])-zeros[k])*scales[k])
		}
		i += n
	}
	return nil
}

// Codes implements [Elements].
func (h hqqWeight) Codes(quantize.Blocks, int64, int64) error {
	return wrong(h.packed, "no type here has its codes")
}
