package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Nemotron is the configuration of model type "nemotron" (Nemotron-4, Minitron): a pre-norm decoder with LayerNorms
// whose weights are used as 1 + w, a partial rope, and a plain MLP that squares the positive part. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type Nemotron struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "nemotron",
		Plain:         true,
		Architectures: []string{"NemotronForCausalLM"},
		GGUF:          []gguf.Map{ggufNemotron},
		Docs:          arch.Docs{Variants: "partial rope, biases, tied embeddings"},
	}, ParseNemotron)
}

// ParseNemotron parses the config.json of a nemotron model.
func ParseNemotron(data []byte) (*Nemotron, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "NemotronForCausalLM", Context: 4096, NormEps: 1e-5, BOS: []int32{2}, EOS: []int32{3}}
	m := &Nemotron{config.ParseDense(top, o, d, config.RopeOptions{Partial: 0.5}, "relu2")}
	m.NormEps = o.Above("norm_eps", 1e-5, 0)
	m.MLPBias = o.Bool("mlp_bias", false)
	return config.Done(m, o)
}

func (m *Nemotron) Facts() config.Facts { return m.FactsAs("nemotron", m.Rope, m.Table()) }

func (m *Nemotron) Table() table.Table { return m.Decoder().Table("nemotron") }

func (m *Nemotron) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:  decoder.Norm{LayerNorm: true, Bias: true, Offset: true},
		Plain: decoder.UpDown,
	}}
}

// ggufNemotron is the mapping of nemotron. Weights of norms have 1 added.
var ggufNemotron = gguf.Map{
	Architecture: "nemotron",
	Limits:       gguf.Limits{Biases: gguf.AllBiases, Square: true, OwnHead: true},
	Config:       map[string]any{"model_type": "nemotron", "architectures": []string{"NemotronForCausalLM"}},
	Keys:         gguf.EpsKeys("norm_eps"),
	Tensors: slices.Concat(gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, gguf.PlainMLP("mlp.up_proj", "mlp.down_proj"),
		gguf.LayerNorms(gguf.PlusOne)),
	Adjust: func(c map[string]any, f gguf.File) error {
		// The converter takes the part of hidden_size/num_attention_heads, whatever head_dim is.
		dim, own := c["head_dim"]
		delete(c, "head_dim")
		err := gguf.SetPartial(c, "nemotron", f)
		if own {
			c["head_dim"] = dim
		}
		if err != nil {
			return err
		}
		return gguf.SetBiases(c, f)
	},
}
