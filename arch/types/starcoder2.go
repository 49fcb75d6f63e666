package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Starcoder2 is the configuration of model type "starcoder2": a pre-norm decoder with LayerNorms, biases and a plain
// MLP. Absent keys have the defaults of transformers 5.23; sizes are required.
type Starcoder2 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "starcoder2",
		Plain:         true,
		Architectures: []string{"Starcoder2ForCausalLM"},
		GGUF:          []gguf.Map{ggufStarcoder2},
		Idle: []arch.Idle{
			{Why: "another key of the type says it", Keys: []string{"activation_function", "layer_norm_epsilon"}},
		},
		Fixed: []arch.Fixed{
			{Key: "mlp_type", Values: []string{`"default"`}},
			{Key: "norm_type", Values: []string{`"layer_norm"`}},
			{Key: "scale_attn_weights", Values: []string{"true"}},
		},
		Docs: arch.Docs{Variants: "with and without biases, sliding window in all layers, untied embeddings"},
	}, ParseStarcoder2)
}

// ParseStarcoder2 parses the config.json of a starcoder2 model.
func ParseStarcoder2(data []byte) (*Starcoder2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Starcoder2{config.ParseDense(top, o, config.Defaults{
		Class: "Starcoder2ForCausalLM", KVHeads: 2, Context: 4096, NormEps: 1e-5, Tied: true, BOS: []int32{50256},
		EOS: []int32{50256},
	}, config.RopeOptions{}, config.GELU...)}
	m.NormEps = o.Above("norm_epsilon", 1e-5, 0)
	m.AttentionBias = o.Bool("use_bias", true)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	m.SlideEverywhere(o.Window("sliding_window", 0))
	return config.Done(m, o)
}

func (m *Starcoder2) Facts() config.Facts { return m.FactsAs("starcoder2", m.Rope, m.Table()) }

func (m *Starcoder2) Table() table.Table { return m.Decoder().Table("starcoder2") }

func (m *Starcoder2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:  decoder.Norm{LayerNorm: true, Bias: true},
		Plain: decoder.Plain{Up: "c_fc", Down: "c_proj"},
	}}
}

// ggufStarcoder2 is the mapping of starcoder2. llama.cpp ignores the window.
var ggufStarcoder2 = gguf.WithBias(gguf.Map{
	Architecture: "starcoder2",
	Limits:       gguf.Limits{Biases: gguf.RequiredBiases, Square: true},
	Config:       map[string]any{"model_type": "starcoder2", "architectures": []string{"Starcoder2ForCausalLM"}},
	Keys:         gguf.EpsKeys("norm_epsilon"),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.PlainMLP("mlp.c_fc", "mlp.c_proj"),
		gguf.LayerNorms(gguf.Op{})),
	Adjust: gguf.SetBiases,
}, "use_bias")
