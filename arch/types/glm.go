package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Glm is the configuration of model type "glm" (GLM-4, GLM-Edge): a pre-norm decoder with interleaved rope of half of
// each head. Checkpoints have gate and up in one tensor. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Glm struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "glm",
		Plain:         true,
		Architectures: []string{"GlmForCausalLM"},
		GGUF:          []gguf.Map{ggufGlm},
		Published:     table.Published{Projections: table.Fused},
		Docs:          arch.Docs{Variants: "partial interleaved rope, biases, tied embeddings"},
	}, ParseGlm)
}

// ParseGlm parses the config.json of a glm model.
func ParseGlm(data []byte) (*Glm, error) {
	d, o, err := parseGlmDense(data, "GlmForCausalLM")
	if err != nil {
		return nil, err
	}
	return config.Done(&Glm{d}, o)
}

// parseGlmDense reads the keys of glm and glm4. The output projection has no bias.
func parseGlmDense(data []byte, class string) (config.Dense, config.Object, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return config.Dense{}, o, err
	}
	m := config.ParseDense(top, o, config.Defaults{
		Class: class, KVHeads: 2, HeadDim: 128, Context: 1 << 17, NormEps: 1.5625e-7, EOS: []int32{151329, 151336, 151338},
	}, config.RopeOptions{Partial: 0.5}, config.SiLU...)
	m.AttentionBias, m.OutputBias = o.Bool("attention_bias", true), false
	return m, o, nil
}

func (m *Glm) Facts() config.Facts { return m.FactsAs("glm", m.Rope, m.Table()) }

func (m *Glm) Table() table.Table {
	t := m.Decoder().Table("glm")
	fusesGateUp(&m.Dense, &t)
	return t
}

// fusesGateUp states that checkpoints have gate and up of each layer in one tensor.
func fusesGateUp(m *config.Dense, t *table.Table) {
	for i := range m.Layers {
		mlp := m.LayerName(i) + "mlp."
		t.Fuses(mlp+"gate_up_proj", mlp+"gate_proj", mlp+"up_proj")
	}
}

func (m *Glm) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}

// ggufGlm is the mapping of glm.
var ggufGlm = gguf.Map{
	Architecture: "chatglm",
	Limits:       gguf.Limits{Square: true},
	Config:       map[string]any{"model_type": "glm", "architectures": []string{"GlmForCausalLM"}},
	Keys:         gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.PreNorms, gguf.Linears(gguf.Op{},
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj")),
	Adjust: func(c map[string]any, f gguf.File) error {
		if _, ok := c["head_dim"]; !ok {
			c["head_dim"] = nil // hidden_size/num_attention_heads
		}
		if err := gguf.SetPartial(c, "chatglm", f); err != nil {
			return err
		}
		return gguf.SetBiases(c, f)
	},
}
