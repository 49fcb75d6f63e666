package checkpoint

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	mapping "github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// weights makes the checkpoint's tensors of those of the file.
func (c *Checkpoint) weights(s *set, g mapping.Map, model arch.Model) error {
	shapes, layers := map[string][]int64{}, model.Facts().Layers
	for _, spec := range model.Table().Specs {
		for _, form := range spec.Forms {
			for i, name := range form.Names {
				if _, ok := shapes[name]; !ok {
					shapes[name] = form.Shapes[i]
				}
			}
		}
		shapes[spec.Name] = spec.Shape
	}
	for _, name := range s.names {
		t := s.tensors[name]
		to, ok := g.Find(name, layers, s)
		switch {
		case !ok && isScale(s, name):
			continue // of another tensor, which applies it
		case !ok:
			return s.wrong(t, "a %s model has no such tensor", g.Architecture)
		case to.To == "":
			c.Ignored = append(c.Ignored, packed.Ignored{Source: t.source, Reason: to.Why})
			continue
		}
		if err := c.add(s, t, to, shapeOf(shapes, to.To, t.Shape), model); err != nil {
			return err
		}
	}
	return c.numbers(s, g, layers)
}

// numbers adds the tensors that the file has as numbers in its metadata.
func (c *Checkpoint) numbers(s *set, g mapping.Map, layers int64) error {
	f := s.files[0]
	for _, k := range g.Numbers {
		v, ok := f.header.Metadata.Lookup(k.Key)
		if !ok || v.Kind != gguf.Float32 || v.IsArray && int64(v.Len) != layers {
			return fmt.Errorf("%s: %w: %s must be a list of %d float32 numbers, or one", s.path(), mapping.ErrMetadata, k.Key,
				layers)
		}
		for i := range layers {
			at := v.Offset - f.header.Data
			if v.IsArray {
				at += 4 * i
			}
			c.Plain = append(c.Plain, safetensors.Source{File: f.File, Tensor: safetensors.Tensor{
				Name:  strings.Replace(k.To, "*", strconv.FormatInt(i, 10), 1),
				DType: safetensors.F32, Shape: []int64{1}, Begin: at, End: at + 4,
			}})
		}
	}
	return nil
}

// shapeOf returns the shape that the table has for a tensor, if it differs in dimensions of 1 only: ggml drops those.
func shapeOf(shapes map[string][]int64, name string, shape []int64) []int64 {
	want, ok := shapes[name]
	if !ok {
		return shape
	}
	bare := func(shape []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 1 })
	}
	if slices.Equal(bare(want), bare(shape)) {
		return want
	}
	return shape
}

// isScale reports whether a tensor is a factor of an NVFP4 weight, or of the inputs that it was made for.
func isScale(s *set, name string) bool {
	for _, end := range []string{scaleEnd, ".input_scale"} {
		if base, ok := strings.CutSuffix(name, end); ok {
			w, ok := s.tensors[base+".weight"]
			return ok && w.Type == ggml.NVFP4
		}
	}
	return false
}

const scaleEnd = ".scale"

func (s *set) wrong(t tensor, format string, args ...any) error {
	return fmt.Errorf("%s: tensor %s: %w: %w", t.source.File.Path(), t.Name, packed.ErrSource, fmt.Errorf(format, args...))
}

// add adds a tensor under the name of a checkpoint.
func (c *Checkpoint) add(s *set, t tensor, to mapping.Tensor, shape []int64, model arch.Model) error {
	d := safetensors.DType(t.Type.DType())
	if plainType(t.Type) && to.Op.Rows == nil && to.Op.Blocks == nil && to.Op.Each == nil {
		switch d {
		case safetensors.F32, safetensors.F16, safetensors.BF16, safetensors.F64:
		default:
			return s.wrong(t, "it is %v: only weights of floating point can be imported", t.Type)
		}
		t.source.Name, t.source.Shape = to.To, shape
		c.Plain = append(c.Plain, t.source)
		return nil
	}
	w := packed.Weight{
		Name: to.To, Shape: shape, DType: d, Format: "GGUF " + t.Type.String(), Plain: true,
		Parts: []safetensors.Source{t.source}, Read: reader(t),
	}
	if !plainType(t.Type) {
		if err := c.coded(s, t, &w); err != nil {
			return err
		}
	}
	if err := c.move(s, t, to.Op, &w, model); err != nil {
		return err
	}
	c.Weights = append(c.Weights, w)
	return nil
}

// coded describes a tensor of a type with blocks.
func (c *Checkpoint) coded(s *set, t tensor, w *packed.Weight) error {
	b := blocks{tensor: t, scales: quantize.F16, worst: &c.worst}
	if err := s.nvfp4Scale(t, w, &b); err != nil {
		return err
	}
	codes, ok := t.Type.Codes()
	w.DType = safetensors.F16
	switch {
	case ok && b.each == nil:
		w.Type, w.Global = codes.Format, b.global
		if codes.Format.Mode() == "affine" {
			if c.options.Exact {
				b.scales = quantize.F32
			}
			w.Scales = safetensors.DType(b.scales)
		}
		if codes.Rounded && !c.options.Exact {
			c.Rounded = append(c.Rounded, w.Name)
			w.Format += ", scales rounded to float16"
		}
		if codes.Rounded && c.options.Exact {
			w.Format += ", scales in float32"
		}
	case ok:
		w.Why = "each expert has a scale of its own"
	default:
		w.Why = "no format has its codes"
	}
	if w.Type == 0 || w.Type.Mode() != "affine" {
		var err error
		if w.DType, err = c.elementType(b); err != nil {
			return err
		}
	}
	w.Read = b
	return nil
}

// elementType returns the type of the elements of a weight whose codes are not kept.
func (c *Checkpoint) elementType(b blocks) (safetensors.DType, error) {
	if c.options.Exact {
		return safetensors.F32, nil
	}
	if c.options.HeadersOnly {
		c.unsampled++
		return safetensors.F16, nil
	}
	n := elements(b.Shape)
	block, _ := b.Type.Block()
	count := min(n/int64(block), samples) * int64(block)
	raw := make([]byte, 4*count)
	if err := b.Floats(raw, (n-count)/2/int64(block)*int64(block), count); err != nil {
		return "", err
	}
	if roundingError(raw, quantize.BF16) < roundingError(raw, quantize.F16) {
		return safetensors.BF16, nil
	}
	return safetensors.F16, nil
}

// samples is the number of blocks, in the middle of a tensor, that decide between float16 and bfloat16. They are
// neighbours, so that a file on a hub is asked once.
const samples = 64

// roundingError returns the sum of the squared errors of float32 elements that are stored in a type; infinite if one is
// out of its range.
func roundingError(raw []byte, to quantize.DType) float64 {
	narrow, back := make([]byte, len(raw)/2), make([]byte, len(raw))
	if quantize.CastTo(to).Encode(quantize.Blocks{Packed: narrow}, raw, quantize.F32) != nil ||
		quantize.Cast(back, quantize.F32, narrow, to) != nil {
		return math.Inf(1)
	}
	sum := 0.0
	for i := 0; i < len(raw); i += 4 {
		e := float64(math.Float32frombits(le.Uint32(raw[i:]))) - float64(math.Float32frombits(le.Uint32(back[i:])))
		sum += e * e
	}
	return sum
}

// nvfp4Scale reads the factor of an NVFP4 weight: one, or one for each expert.
func (s *set) nvfp4Scale(t tensor, w *packed.Weight, b *blocks) error {
	scale, ok := s.tensors[strings.TrimSuffix(t.Name, ".weight")+scaleEnd]
	if t.Type != ggml.NVFP4 || !ok {
		return nil
	}
	each, err := s.Floats(scale.Name)
	if err != nil {
		return err
	}
	w.Parts = append(w.Parts, scale.source)
	w.Format += " with a scale of the tensor"
	switch {
	case len(each) == 1:
		if !(each[0] > 0 && each[0] <= math.MaxFloat32) {
			return s.wrong(scale, "it is %v, want a positive number; download the file again", each[0])
		}
		if each[0] != 1 {
			b.global = each[0]
		}
	case len(t.Shape) == 3 && int64(len(each)) == t.Shape[0]:
		b.each = each
	default:
		return s.wrong(scale, "it has %d elements, want 1, or one for each expert", len(each))
	}
	return nil
}

// move applies what undoes the converter's changes.
func (c *Checkpoint) move(s *set, t tensor, op mapping.Op, w *packed.Weight, model arch.Model) error {
	if op.Rows == nil && op.Blocks == nil && op.Each == nil {
		return nil
	}
	m := moved{from: w.Read, width: 1, each: op.Each, format: w.Type, scales: quantize.F16}
	if w.Scales != "" {
		m.scales = quantize.DType(w.Scales)
	}
	rows := elements(t.Shape)
	if n := len(t.Shape); n > 1 || op.Blocks != nil && n > 0 {
		m.width = t.Shape[n-1]
		rows /= max(m.width, 1)
	}
	if op.Rows != nil {
		if m.rows = op.Rows(model, rows); !permutes(m.rows, rows) {
			return s.wrong(t, "its %d rows do not fit %s", rows, s.heads())
		}
	}
	if op.Blocks != nil {
		m.columns, m.size = op.Blocks(model, m.width)
		if m.size < 1 || m.width%m.size != 0 || !permutes(m.columns, m.width/m.size) {
			return s.wrong(t, "its %d columns do not fit %s", m.width, s.heads())
		}
		if w.Type != 0 && m.size%int64(w.Type.Group()) != 0 {
			w.Type, w.Scales, w.Global, w.Why = 0, "", 0, "its columns have another order in the file"
		}
	}
	if w.Type == 0 && w.Why == "" {
		w.Why = "it is not quantized"
	}
	if op.Each != nil {
		w.Type, w.Scales, w.Why, w.DType = 0, "", "its elements are computed", safetensors.F32
	}
	w.Read, w.Format = m, w.Format+", "+op.What
	return nil
}

// heads names the metadata that the order of rows and columns depends on, with its values.
func (s *set) heads() string {
	architecture, _ := s.Value("general.architecture")
	var list []string
	for _, key := range []string{"head_count", "head_count_kv", "key_length"} {
		key = fmt.Sprintf("%v.attention.%s", architecture, key)
		if v, ok := s.Value(key); ok {
			list = append(list, fmt.Sprintf("%s %v", key, v))
		} else {
			list = append(list, key+" (missing)")
		}
	}
	return clip.Text(strings.Join(list, ", "), 300) + "; convert the model again"
}

// permutes reports whether a list has each number below n once.
func permutes(list []int64, n int64) bool {
	if int64(len(list)) != n {
		return false
	}
	seen := make([]bool, n)
	for _, i := range list {
		if i < 0 || i >= n || seen[i] {
			return false
		}
		seen[i] = true
	}
	return true
}
