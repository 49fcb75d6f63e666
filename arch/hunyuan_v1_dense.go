package arch

import (
	"math"

	"github.com/ingotml/ingot/arch/decoder"
)

// HunYuanDense is the configuration of model type "hunyuan_v1_dense" (Hunyuan 0.5B to 7B): a pre-norm decoder with
// norms of query and key heads after rope. Absent keys have the defaults of transformers 5.23; sizes are required.
type HunYuanDense struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "hunyuan_v1_dense",
		Plain:         true,
		Architectures: []string{"HunYuanDenseV1ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseHunYuanDense(config) },
		GGUF:          []GGUF{ggufHunYuan},
		Docs:          Docs{Variants: "norms after rope, rope with `alpha`, biases, tied embeddings"},
	})
}

// ParseHunYuanDense parses the config.json of a hunyuan_v1_dense model.
func ParseHunYuanDense(config []byte) (*HunYuanDense, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "HunYuanDenseV1ForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	m := &HunYuanDense{parseDense(top, o, d, ropeOptions{}, silu...)}
	m.Rope = alphaRope(o, m.Rope, m.HeadDim)
	return parsed(m, o)
}

// alphaRope returns the rope that a dynamic one with a fixed alpha is: a default one with a larger theta.
func alphaRope(o object, r Rope, dim int) Rope {
	in, ok := o.object("rope_scaling")
	if !ok {
		in, _ = o.object("rope_parameters")
	}
	alpha := in.atLeast("alpha", 0, 0)
	if r.Type != RopeDynamic || alpha == 0 {
		return r
	}
	r.Theta *= math.Pow(alpha, float64(dim)/float64(dim-2))
	switch {
	case r.Theta > maxNumber:
		in.fail("alpha", "leave a smaller theta")
	case r.Theta <= minTheta:
		in.fail("alpha", "leave a larger theta")
	}
	return Rope{Type: RopeDefault, Theta: r.Theta, PartialFactor: r.PartialFactor}
}

// Facts implements [Model].
func (m *HunYuanDense) Facts() Facts { return m.facts("hunyuan_v1_dense", m.Rope, m.Table()) }

// Table implements [Model].
func (m *HunYuanDense) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("hunyuan_v1_dense", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"self_attn.query_layernorm", int64(m.HeadDim), false)
		t.norm(layer+"self_attn.key_layernorm", int64(m.HeadDim), false)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// Decoder implements [Described].
func (m *HunYuanDense) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "query_layernorm", K: "key_layernorm", AfterRope: true},
	}}
}
