package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Tensor is a planned blob with one tensor.
type Tensor struct {
	Name   string            `json:"name"`
	Shape  []int64           `json:"shape"`
	Source safetensors.DType `json:"source_type"`
	Format string            `json:"source_format,omitempty"` // packing of a quantized source; Source is its element type
	Type   string            `json:"type"`                    // of the blob: int4, mxfp8, bf16, ...
	Rule   string            `json:"rule"`                    // the precision rule that decided the type
	// Transform lists the steps in order: stack, concat, slice, dequantize, cast, quantize; or copy; or keep codes; or
	// reuse.
	Transform []string          `json:"transform"`
	Sources   []Source          `json:"sources"` // their concatenation is the tensor
	Arrays    []Array           `json:"arrays"`  // of the blob, in order
	Metadata  map[string]string `json:"metadata,omitempty"`
	Bytes     int64             `json:"bytes"`            // of the arrays
	Size      int64             `json:"size"`             // of the blob
	Digest    digest.Digest     `json:"digest,omitempty"` // of a blob that is already in the store

	target      quantize.Type // 0 = the source's
	layout      layout
	match       arch.Matched // which elements of the sources
	requantized bool         // the source is quantized, and not [sources.Weight.Plain]
}

// Source is a tensor of the checkpoint.
type Source struct {
	Name  string            `json:"name"`
	File  string            `json:"file"` // in the checkpoint's folder, or a blob's digest
	DType safetensors.DType `json:"dtype"`
	Shape []int64           `json:"shape"`
	// Format is the packing in a quantized checkpoint. DType and Shape describe the unpacked elements.
	Format string `json:"format,omitempty"`

	weight weight
}

// Array is one key of a blob.
type Array struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int64           `json:"shape"`
	Bytes int64             `json:"bytes"`
}

// The keys of a quantized tensor's blob are the tensor's name, alone and with a suffix. The metadata states the type.
const (
	scaleSuffix = ".scale"
	biasSuffix  = ".bias"

	metaType  = "quant_type"
	metaGroup = "group_size"
	metaRule  = "quant_rule"
)

// planTensor plans one tensor's blob.
func (inv *Inventory) planTensor(m arch.Matched, prefix string, c *chooser) (Tensor, error) {
	t := Tensor{Name: prefix + m.Spec.Name, Shape: m.Spec.Shape, match: m}
	for _, name := range m.Sources {
		w, err := inv.lookup(name)
		if err != nil {
			return t, err
		}
		t.Sources = append(t.Sources, w.describe())
	}
	if len(t.Sources) == 0 {
		return t, fmt.Errorf("tensor %s: %w: it has no sources", t.Name, ErrSource)
	}
	t.Source = t.Sources[0].DType
	if m.Make != arch.Copy {
		t.Transform = []string{string(m.Make)}
	}
	if first := t.Sources[0].weight; first.store != nil {
		return inv.planStored(t, first, m.Spec, c)
	}
	if slices.ContainsFunc(t.Sources, func(s Source) bool { return s.weight.coded != nil }) {
		return inv.planCoded(t, c)
	}
	var err error
	if t.target, t.Rule, err = c.choose(m.Spec, t.Source); err != nil {
		return t, err
	}
	if m.Make == arch.Add {
		t.target, t.Rule = quantize.ToF32, "what is added to it is exact in float32"
		t.Transform = []string{fmt.Sprintf("add %v", m.Add)}
	}
	if err := t.computeLayout(); err != nil {
		return t, wrapTensor(t.Name, err)
	}
	return t, nil
}

// planStored plans a tensor that is already a blob in the store. The blob is reused if its type is the wanted one.
func (inv *Inventory) planStored(t Tensor, w weight, spec arch.Spec, c *chooser) (Tensor, error) {
	var err error
	if t.target, t.Rule, err = c.choose(spec, t.Source); err != nil {
		return t, err
	}
	switch {
	case t.target != 0 && t.target != w.quant && w.quant != 0:
		return t, fmt.Errorf("%s: tensor %s: %w: it is already %s, and quantizing it again to %s would add to the error; "+
			"start from the unquantized model", inv.From, t.Name, ErrSource, w.quant, t.target)
	case t.target == 0 || t.target == w.quant:
		if w.quant != 0 && t.target == 0 {
			t.target, t.Rule = w.quant, "as it is in "+inv.From
		}
		if t.Name == w.layer.Name { // otherwise a draft's blob becomes a model's, under another key
			t.Transform = []string{"reuse"}
			if err := t.computeLayout(); err != nil {
				return t, wrapTensor(t.Name, err)
			}
			t.Digest, t.Size = w.layer.Digest, w.layer.Size
			return t, nil
		}
		if w.quant != 0 {
			return t, fmt.Errorf("%s: tensor %s: %w: a quantized model in the store cannot become a draft; use its source",
				inv.From, t.Name, ErrSource)
		}
	}
	if err := t.computeLayout(); err != nil {
		return t, wrapTensor(t.Name, err)
	}
	return t, nil
}

// computeLayout computes the blob's layout.
func (t *Tensor) computeLayout() error {
	lay, err := newLayout(t.Name, t.target, t.Source, t.Shape, t.Sources[0].weight.global)
	if err != nil {
		return err
	}
	return t.setLayout(lay)
}

// setLayout sets the blob's layout, and the fields that follow from it.
func (t *Tensor) setLayout(lay layout) error {
	t.layout = lay
	t.Arrays, t.Metadata, t.Bytes, t.Size = lay.arrays, lay.metadata, lay.bytes(), lay.size()
	switch {
	case t.target == 0:
		t.Type = strings.ToLower(string(t.Source))
	default:
		t.Type = t.target.String()
		if t.Digest != "" || slices.Equal(t.Transform, []string{"reuse"}) {
			break
		}
		if lay.keep {
			t.Transform = append(t.Transform, "keep codes")
			break
		}
		if lay.floats {
			t.Transform = append(t.Transform, "dequantize")
		}
		if lay.middle != "" {
			t.Transform = append(t.Transform, "cast to "+strings.ToLower(string(lay.middle)))
		}
		if t.target.IsCast() {
			t.Transform = append(t.Transform, "cast to "+t.Type)
		} else {
			t.Transform = append(t.Transform, "quantize to "+t.Type)
		}
	}
	if len(t.Transform) == 0 {
		t.Transform = []string{"copy"}
	}
	return nil
}

func (t Tensor) params() int64 { return safetensors.Tensor{Shape: t.Shape}.NumElements() }

func (t Tensor) sourceBytes() int64 {
	if t.layout.keep || t.layout.floats {
		var n int64
		for _, s := range t.Sources {
			n += s.size()
		}
		return n
	}
	return t.params() * int64(t.Source.Bits()) / 8
}

func (s Source) size() int64 {
	if s.weight.coded != nil {
		return s.weight.coded.Size()
	}
	return safetensors.Tensor{DType: s.DType, Shape: s.Shape}.Size()
}

// layout describes the positions of a blob's contents.
type layout struct {
	start    int64 // of the data, after the header
	arrays   []Array
	offsets  []int64 // of the arrays, in the blob
	metadata map[string]string
	target   quantize.Type
	source   quantize.DType // element type of the source; "" if the elements are only copied
	middle   quantize.DType // type that elements are cast to before they are quantized; "" = none
	width    int64          // bytes per element of the source

	// For quantized sources, whose elements package sources reads:
	keep   bool           // as codes of target
	floats bool           // as float32; source is then F32
	stored quantize.DType // type of scales and biases computed in float32; "" = unchanged
	global float32        // scale of the whole tensor; 0 = none
}

func newLayout(
	name string, target quantize.Type, source safetensors.DType, shape []int64, global float32,
) (layout, error) {
	l := layout{target: target, width: int64(source.Bits() / 8), source: quantize.DType(source), global: global}
	if target == 0 {
		l.source = ""
		l.arrays = []Array{{Name: name, DType: source, Shape: shape}}
		return l, l.finish()
	}
	coded := l.source
	if !target.IsCast() && target.GroupSizes(coded) == (quantize.Sizes{}) {
		coded = quantize.F32
		l.middle = coded
	}
	parts, err := target.Parts(coded, shape)
	if err != nil {
		return l, err
	}
	l.list(name, parts)
	l.quantized(target.Rule())
	return l, l.finish()
}

// list adds the arrays of a quantized tensor.
func (l *layout) list(name string, parts quantize.Parts) {
	for _, p := range []struct {
		name string
		part quantize.Part
	}{{name, parts.Packed}, {name + scaleSuffix, parts.Scales}, {name + biasSuffix, parts.Biases}} {
		if p.part.DType != "" {
			l.arrays = append(l.arrays, Array{Name: p.name, DType: safetensors.DType(p.part.DType), Shape: p.part.Shape})
		}
	}
	if l.global != 0 {
		l.arrays = append(l.arrays, Array{Name: name + globalSuffix, DType: safetensors.F32, Shape: []int64{}})
	}
}

// quantized adds metadata about a quantized target's type, and its rule version if known.
func (l *layout) quantized(rule string) {
	if l.target.IsCast() {
		return
	}
	l.metadata = map[string]string{metaType: typeName(l.target), metaGroup: strconv.Itoa(l.target.Group())}
	if rule != "" {
		l.metadata[metaRule] = rule
	}
}

// typeName returns a type's name without its group size, which other readers of blobs expect in a separate key.
func typeName(t quantize.Type) string {
	if t.Mode() == "affine" {
		return t.WithGroup(64).String()
	}
	return t.String()
}

// finish computes the arrays' offsets.
func (l *layout) finish() error {
	header, placed, err := l.header()
	if err != nil {
		return err
	}
	l.start = int64(len(header))
	for i, p := range placed {
		l.arrays[i].Bytes = p.Size()
		l.offsets = append(l.offsets, l.start+p.Begin)
	}
	return nil
}

// header encodes the part of the blob before the data. It is not stored in the layout, because padding makes it 16 KiB.
func (l layout) header() ([]byte, []safetensors.Tensor, error) {
	var list []safetensors.Tensor
	for _, a := range l.arrays {
		list = append(list, safetensors.Tensor{Name: a.Name, DType: a.DType, Shape: a.Shape})
	}
	return safetensors.EncodeHeader(list, l.metadata)
}

func (l layout) bytes() int64 {
	var n int64
	for _, a := range l.arrays {
		n += a.Bytes
	}
	return n
}

func (l layout) size() int64 { return l.start + l.bytes() }
