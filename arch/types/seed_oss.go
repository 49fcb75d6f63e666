package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// SeedOss is the configuration of model type "seed_oss" (Seed-OSS): a pre-norm decoder with biases of queries, keys and
// values. Absent keys have the defaults of transformers 5.23; sizes are required.
type SeedOss struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "seed_oss",
		Plain:         true,
		Architectures: []string{"SeedOssForCausalLM"},
		GGUF:          []gguf.Map{ggufSeedOss},
		Docs:          arch.Docs{Variants: "biases of attention's input and output and of the MLP, tied embeddings"},
	}, ParseSeedOss)
}

// ParseSeedOss parses the config.json of a seed_oss model.
func ParseSeedOss(data []byte) (*SeedOss, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "SeedOssForCausalLM", KVHeads: 8, HeadDim: 128, Context: 1 << 19, NormEps: 1e-6, BOS: []int32{0},
		EOS: []int32{2},
	}
	m := &SeedOss{config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = o.Bool("attention_bias", true), o.Bool("attention_out_bias", false)
	m.MLPBias = o.Bool("mlp_bias", false)
	return config.Done(m, o)
}

func (m *SeedOss) Facts() config.Facts { return m.FactsAs("seed_oss", m.Rope, m.Table()) }

func (m *SeedOss) Table() table.Table { return m.Decoder().Table("seed_oss") }

func (m *SeedOss) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}

var ggufSeedOss = seedOss()

// seedOss has the norm before the MLP under the name of one after attention.
func seedOss() gguf.Map {
	g := gguf.Plain("seed_oss", "seed_oss", "SeedOssForCausalLM")
	g.Tensors = slices.Concat(gguf.Names(gguf.Op{}, "post_attention_norm.weight", "post_attention_layernorm.weight"),
		g.Tensors)
	g.Adjust = func(c map[string]any, f gguf.File) error {
		_, c["attention_out_bias"] = f.Shape("blk.0.attn_output.bias")
		return gguf.SetBiases(c, f)
	}
	return g
}
