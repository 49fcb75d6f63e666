package types

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// HunYuanDense is the configuration of model type "hunyuan_v1_dense" (Hunyuan 0.5B to 7B): a pre-norm decoder with
// norms of query and key heads after rope. Absent keys have the defaults of transformers 5.23; sizes are required.
type HunYuanDense struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "hunyuan_v1_dense",
		Plain:         true,
		Architectures: []string{"HunYuanDenseV1ForCausalLM"},
		GGUF:          []gguf.Map{ggufHunYuan},
		Docs:          arch.Docs{Variants: "norms after rope, rope with `alpha`, biases, tied embeddings"},
	}, ParseHunYuanDense)
}

// ParseHunYuanDense parses the config.json of a hunyuan_v1_dense model.
func ParseHunYuanDense(data []byte) (*HunYuanDense, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "HunYuanDenseV1ForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	m := &HunYuanDense{config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.Rope = alphaRope(o, m.Rope, m.HeadDim)
	return config.Done(m, o)
}

// alphaRope returns the rope that a dynamic one with a fixed alpha is: a default one with a larger theta.
func alphaRope(o config.Object, r config.Rope, dim int) config.Rope {
	in, ok := o.Object("rope_scaling")
	if !ok {
		in, _ = o.Object("rope_parameters")
	}
	alpha := in.AtLeast("alpha", 0, 0)
	if r.Type != config.RopeDynamic || alpha == 0 {
		return r
	}
	r.Theta *= math.Pow(alpha, float64(dim)/float64(dim-2))
	switch {
	case r.Theta > config.MaxNumber:
		in.Fail("alpha", "leave a smaller theta")
	case r.Theta <= config.MinTheta:
		in.Fail("alpha", "leave a larger theta")
	}
	return config.Rope{Type: config.RopeDefault, Theta: r.Theta, PartialFactor: r.PartialFactor}
}

func (m *HunYuanDense) Facts() config.Facts { return m.FactsAs("hunyuan_v1_dense", m.Rope, m.Table()) }

func (m *HunYuanDense) Table() table.Table { return m.Decoder().Table("hunyuan_v1_dense") }

func (m *HunYuanDense) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "query_layernorm", K: "key_layernorm", AfterRope: true},
	}}
}

var ggufHunYuan = hunYuan("hunyuan-dense", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")

// hunYuan has the scaled theta of its rope.
func hunYuan(architecture, modelType, class string, more ...gguf.Key) gguf.Map {
	g := gguf.Plain(architecture, modelType, class, more...)
	g.Tensors = append(slices.Clone(g.Tensors), gguf.Names(gguf.Op{},
		"attn_q_norm.weight", "self_attn.query_layernorm.weight", "attn_k_norm.weight", "self_attn.key_layernorm.weight")...)
	g.Adjust = func(c map[string]any, f gguf.File) error {
		delete(c, "rope_scaling") // of factor 1
		return gguf.SetBiases(c, f)
	}
	return g
}
