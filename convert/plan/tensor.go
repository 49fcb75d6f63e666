package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/blob"
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
	Arrays    []blob.Array      `json:"arrays"`  // of the blob, in order
	Metadata  map[string]string `json:"metadata,omitempty"`
	Bytes     int64             `json:"bytes"`            // of the arrays
	Size      int64             `json:"size"`             // of the blob
	Digest    digest.Digest     `json:"digest,omitempty"` // of a blob that is already in the store

	// What the steps do, for the writer:
	Coding Coding        `json:"-"`
	Match  table.Matched `json:"-"` // which elements of the sources

	requantized bool // the source is quantized, and not [packed.Weight.Plain]
	dequantized bool // the codes of nvfp4 are not kept, though nobody asked for another type
}

// Source is a tensor of the source.
type Source struct {
	Name  string            `json:"name"`
	File  string            `json:"file"` // in the checkpoint's folder, or a blob's digest
	DType safetensors.DType `json:"dtype"`
	Shape []int64           `json:"shape"`
	// Format is the packing in a quantized checkpoint. DType and Shape describe the unpacked elements.
	Format string `json:"format,omitempty"`

	Tensor *source.Tensor `json:"-"` // the source's own
}

func describeTensor(t *source.Tensor) Source {
	return Source{Name: t.Name, File: t.File, DType: t.DType, Shape: t.Shape, Format: t.Format(), Tensor: t}
}

// planTensor plans one tensor's blob.
func (p *planner) planTensor(m table.Matched, prefix string, c *chooser) (Tensor, error) {
	t := Tensor{Name: prefix + m.Spec.Name, Shape: m.Spec.Shape, Match: m}
	for _, name := range m.Sources {
		found, err := p.src.Lookup(name)
		if err != nil {
			return t, err
		}
		t.Sources = append(t.Sources, describeTensor(found))
	}
	if len(t.Sources) == 0 {
		return t, fmt.Errorf("tensor %s: %w: it has no sources", t.Name, source.ErrSource)
	}
	t.Source = t.Sources[0].DType
	if m.Transposed {
		t.Transform = []string{"transpose"}
	}
	if m.Make != table.Copy {
		t.Transform = append(t.Transform, string(m.Make))
	}
	if first := t.Sources[0].Tensor; first.Header != nil {
		return p.planStored(t, first, m.Spec, c)
	}
	if slices.ContainsFunc(t.Sources, func(s Source) bool { return s.Tensor.Coded != nil }) {
		return planCoded(t, c)
	}
	var err error
	if t.Coding.Target, t.Rule, err = c.choose(m.Spec, t.Source); err != nil {
		return t, err
	}
	if m.Make == table.Add {
		t.Coding.Target, t.Rule = quantize.ToF32, "what is added to it is exact in float32"
		t.Transform = []string{fmt.Sprintf("add %v", m.Add)}
	}
	return t, source.InTensor(t.Name, t.code())
}

// planStored plans a tensor that is already a blob in the store. The blob is reused if its type is the wanted one.
func (p *planner) planStored(t Tensor, from *source.Tensor, spec table.Spec, c *chooser) (Tensor, error) {
	target, rule, err := c.choose(spec, t.Source)
	if err != nil {
		return t, err
	}
	switch {
	case target != 0 && target != from.Quant && from.Quant != 0:
		return t, fmt.Errorf("%s: tensor %s: %w: it is already %s, and quantizing it again to %s would add to the error; "+
			"start from the unquantized model", p.src.From, t.Name, source.ErrSource, from.Quant, target)
	case target == 0 || target == from.Quant:
		if from.Quant != 0 && target == 0 {
			target, rule = from.Quant, "as it is in "+p.src.From
		}
		layer, _ := from.Layer()
		if t.Name == layer.Name { // otherwise a draft's blob becomes a model's, under another key
			t.Coding.Target, t.Rule, t.Transform = target, rule, []string{reuse}
			if err := t.code(); err != nil {
				return t, source.InTensor(t.Name, err)
			}
			t.Digest, t.Size = layer.Digest, layer.Size
			return t, nil
		}
		if from.Quant != 0 {
			return t, fmt.Errorf("%s: tensor %s: %w: a quantized model in the store cannot become a draft; use its source",
				p.src.From, t.Name, source.ErrSource)
		}
	}
	t.Coding.Target, t.Rule = target, rule
	return t, source.InTensor(t.Name, t.code())
}

// reuse is the step of a tensor whose blob is already in the store.
const reuse = "reuse"

// code computes how the tensor's elements become the blob's.
func (t *Tensor) code() error {
	c, err := newCoding(t.Name, t.Coding.Target, t.Source, t.Shape, t.Sources[0].Tensor.Global)
	if err == nil {
		t.setCoding(c)
	}
	return err
}

// setCoding sets the coding, and the fields that follow from it.
func (t *Tensor) setCoding(c Coding) {
	t.Coding = c
	t.Arrays, t.Metadata, t.Bytes, t.Size = c.Layout.Arrays, c.Layout.Metadata, c.Layout.Bytes(), c.Layout.Size()
	if c.Target == 0 {
		t.Type = strings.ToLower(string(t.Source))
	} else {
		t.Type = c.Target.String()
		if !slices.Equal(t.Transform, []string{reuse}) {
			t.Transform = append(t.Transform, c.steps(t.Type)...)
		}
	}
	if len(t.Transform) == 0 {
		t.Transform = []string{"copy"}
	}
}

// Params returns the number of elements.
func (t Tensor) Params() int64 { return safetensors.Tensor{Shape: t.Shape}.NumElements() }

// SourceBytes returns the bytes that are read for the tensor.
func (t Tensor) SourceBytes() int64 {
	if t.Coding.Keep || t.Coding.Floats {
		var n int64
		for _, s := range t.Sources {
			n += s.Tensor.Size()
		}
		return n
	}
	return t.Params() * int64(t.Source.Bits()) / 8
}

// plainType returns the type of a tensor's unpacked elements.
func (t Tensor) plainType() safetensors.DType {
	c := t.Coding
	switch {
	case c.Target == 0:
		return t.Source
	case c.Target.IsCast():
		return safetensors.DType(c.Target.DType())
	}
	if c.Stored != "" {
		return safetensors.DType(c.Stored)
	}
	return safetensors.DType(c.Coded())
}
