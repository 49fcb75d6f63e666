package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
)

// config returns the image's properties for users and registries.
func (p *planner) config() manifest.Config {
	facts, opts := p.src.Model.Facts(), p.opts
	c := manifest.Config{
		Architecture: facts.Architecture, ModelType: facts.ModelType, Format: "safetensors",
		ContextLength: facts.Context, EmbeddingLength: facts.Hidden, Capabilities: p.about.capabilities,
	}
	bytes, packed := map[string]int64{}, map[quantize.Type]int64{}
	for _, t := range p.plan.Tensors {
		c.Params += t.Params()
		bytes[string(t.plainType())] += t.Bytes
		if q := t.Coding.Target; q != 0 && !q.IsCast() {
			packed[q] += t.Bytes
		}
	}
	c.Quantization = mainType(packed, opts.Precision.Type).String()
	types := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(a, b))
	})
	c.DType = strings.Join(types, ",")
	base := p.src.Record().Quantization
	if base != nil && c.Quantization != "" && base.Type != 0 && opts.Precision.Type == 0 {
		c.Quantization = base.Type.String()
	}
	return c
}

// mainType returns the requested type if any tensor has it, or else the type with the most bytes; 0 if there is none.
func mainType(packed map[quantize.Type]int64, requested quantize.Type) quantize.Type {
	if packed[requested] > 0 {
		return requested
	}
	var most quantize.Type
	for _, t := range slices.Sorted(maps.Keys(packed)) {
		if packed[t] > packed[most] {
			most = t
		}
	}
	return most
}
