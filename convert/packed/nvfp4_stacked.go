package packed

import (
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// ModelOpt stores experts that are one tensor X as X (U8 [experts, out, in/2]) with X_weight_scale (F8_E4M3 [experts,
// out, in/16]) and X_weight_scale_2, one number, one for each expert, or one for each expert's gate and another for its
// up projection. If the plain X has matrices [in, out], codes and scales are transposed: [experts, in/2, out], a byte
// has two elements of a column, and [experts, in/16, out]. mxfp4 has powers of two (U8) for 32 elements, and no further
// scale.
// https://github.com/NVIDIA/TensorRT-Model-Optimizer/blob/0.40.0/modelopt/torch/export/unified_export_hf.py
// (maybe_transpose_expert_weight_dimensions)

// stackedFP4 describes the weights of all experts whose codes are t; ok is false if they are none.
func (c *Checkpoint) stackedFP4(t safetensors.Source) (list []Weight, ok bool, err error) {
	if t.DType != safetensors.U8 || len(t.Shape) != 3 {
		return nil, false, nil
	}
	scales, ok := c.Lookup(t.Name + "_weight_scale")
	switch {
	case ok:
	case strings.HasSuffix(t.Name, ".gate_up_proj"), strings.HasSuffix(t.Name, ".down_proj"):
		return nil, true, wrong(t, "it holds 4-bit codes of experts, but %s_weight_scale is missing; "+
			"download the checkpoint again", t.Name)
	default:
		return nil, false, nil
	}
	s := &stacked{codes: t, scales: scales, format: quantize.NVFP4}
	switch scales.DType {
	case safetensors.F8E4M3:
	case safetensors.U8, safetensors.F8E8M0:
		s.format = quantize.MXFP4
	default:
		return nil, true, wrong(scales, "it is %s, want F8_E4M3 (nvfp4) or U8 (mxfp4); download the checkpoint again",
			scales.DType)
	}
	s.group = int64(s.format.Group())
	a, b := t.Shape, scales.Shape
	bytes := s.group / 2 // of a group
	switch {
	case len(b) != 3 || numbers.Count(a) == 0 || numbers.Count(b) == 0 || b[0] != a[0]:
		return nil, true, s.misfit()
	case b[1] == a[1] && b[2]*bytes == a[2]:
		s.out, s.in = a[1], 2*a[2]
	case b[2] == a[2] && b[1]*bytes == a[1]:
		s.out, s.in, s.transposed = a[2], 2*a[1], true
	default:
		return nil, true, s.misfit()
	}
	if err := s.readFactors(c); err != nil {
		return nil, true, err
	}
	return s.weights(c), true, nil
}

// stacked reads the weights of all experts.
type stacked struct {
	codes, scales safetensors.Source
	global        safetensors.Source // if File is nil, there is none
	format        quantize.Type
	group         int64
	transposed    bool // the file has [in, out]
	out, in       int64
	factors       []float32 // one for each of equal ranges of all rows
	from, rows    int64     // the rows of each expert's matrix that are read
}

func (s *stacked) misfit() error {
	return wrong(s.scales, "it has shape %v, but %s of shape %v has a scale for %d elements; "+
		"download the checkpoint again", s.scales.Shape, s.codes.Name, s.codes.Shape, s.group)
}

// readFactors reads the scales of whole matrices.
func (s *stacked) readFactors(c *Checkpoint) error {
	s.factors = []float32{1}
	if s.format != quantize.NVFP4 {
		return nil
	}
	name := s.codes.Name + "_weight_scale_2"
	var ok bool
	if s.global, ok = c.Lookup(name); !ok {
		return wrong(s.codes, "it is nvfp4, but %s, its scales of whole matrices, is missing; download the checkpoint again",
			name)
	}
	n, experts := numbers.Count(s.global.Shape), s.codes.Shape[0]
	if s.global.DType != safetensors.F32 || n != 1 && n != experts && (n != 2*experts || s.out%2 != 0) {
		return wrong(s.global, "it is %s %v, want an F32, or one or two for each of %d experts; "+
			"download the checkpoint again", s.global.DType, s.global.Shape, experts)
	}
	if c.HeadersOnly {
		return nil
	}
	s.factors = make([]float32, n)
	if err := numbers.Some(s.global, s.factors, 0); err != nil {
		return wrong(s.global, "%w", err)
	}
	for _, v := range s.factors {
		if !(v > 0 && v-v == 0) {
			return wrong(s.global, "a scale is %v, want a positive number; download the checkpoint again", v)
		}
	}
	return nil
}

// weights names the weights as in a plain checkpoint: as OpenAI's blocks if there are biases, because their rows have
// that order; X itself; or, if the plain X is transposed, those of gates and up projections as mlx-lm has them.
func (s *stacked) weights(c *Checkpoint) []Weight {
	w := Weight{
		Name: s.codes.Name, DType: safetensors.BF16, Plain: true, Parts: []safetensors.Source{s.codes, s.scales},
		Format: s.format.String() + " of all experts", Why: "each expert has a scale of its own, or they are transposed",
	}
	if s.global.File != nil {
		w.Parts, w.Several = append(w.Parts, s.global), true
	}
	if !s.transposed && s.format == quantize.MXFP4 {
		w.Type, w.Why = s.format, ""
	}
	some := func(name string, from, rows int64) Weight {
		read := *s
		read.from, read.rows = from, rows
		one := w
		one.Name, one.Shape, one.Read = name, []int64{s.codes.Shape[0], rows, s.in}, &read
		return one
	}
	base, paired := strings.CutSuffix(w.Name, ".gate_up_proj")
	switch _, biased := c.Lookup(w.Name + "_bias"); {
	case biased:
		return []Weight{some(w.Name+blocksEnd, 0, s.out)}
	case !s.transposed:
		return []Weight{some(w.Name, 0, s.out)}
	case paired && s.out%2 == 0:
		half := s.out / 2
		return []Weight{some(base+".gate_proj.weight", 0, half), some(base+".up_proj.weight", half, half)}
	}
	return []Weight{some(w.Name+".weight", 0, s.out)}
}

// Floats implements [Elements].
func (s *stacked) Floats(dst []byte, begin, count int64) error {
	first, end := begin/s.in, (begin+count+s.in-1)/s.in
	b := quantize.Blocks{Packed: make([]byte, (end-first)*s.in/2), Scales: make([]byte, (end-first)*s.in/s.group)}
	wide := make([]byte, 4*(end-first)*s.in)
	values := make([]float32, len(wide)/4)
	rest := b
	for row := first; row < end; {
		at := row/s.rows*s.out + s.from + row%s.rows // among all rows of the file
		n := min(end-row, s.rows-row%s.rows)
		if err := s.read(&rest, at, n); err != nil {
			return err
		}
		row += n
	}
	if err := s.format.Decode(wide, quantize.F32, b, quantize.F32); err != nil {
		return err
	}
	if err := numbers.Floats(values, safetensors.F32, wide); err != nil {
		return err
	}
	each := s.codes.Shape[0] * s.out / int64(len(s.factors))
	for i := range count {
		from := begin - first*s.in + i
		row := first + from/s.in
		at := row/s.rows*s.out + s.from + row%s.rows
		numbers.Put(dst, int(i), values[from]*s.factors[at/each])
	}
	return nil
}

// Codes implements [Elements].
func (s *stacked) Codes(dst quantize.Blocks, begin, _ int64) error {
	if err := numbers.ReadAt(s.codes, dst.Packed, begin/2); err != nil {
		return err
	}
	return numbers.ReadAt(s.scales, dst.Scales, begin/s.group)
}

// read reads n rows of one expert's matrix from row at of all on, and drops them from dst.
func (s *stacked) read(dst *quantize.Blocks, at, n int64) error {
	expert, row := at/s.out, at%s.out
	for _, p := range []struct {
		from  safetensors.Source
		to    *[]byte
		lines int64 // bytes of a row
	}{{s.codes, &dst.Packed, s.in / 2}, {s.scales, &dst.Scales, s.in / s.group}} {
		var err error
		if to := (*p.to)[:n*p.lines]; s.transposed {
			err = columns(p.from, to, expert*p.lines, p.lines, s.out, row, n)
		} else {
			err = numbers.ReadAt(p.from, to, at*p.lines)
		}
		if err != nil {
			return err
		}
		*p.to = (*p.to)[n*p.lines:]
	}
	return nil
}

// columns transposes columns [column, column+n) of lines of bytes.
func columns(t safetensors.Source, dst []byte, begin, lines, width, column, n int64) error {
	buf := make([]byte, n)
	for line := range lines {
		if err := numbers.ReadAt(t, buf, (begin+line)*width+column); err != nil {
			return err
		}
		for i, b := range buf {
			dst[int64(i)*lines+line] = b
		}
	}
	return nil
}
