package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Apertus is the configuration of model type "apertus": a pre-norm decoder with norms of query and key heads, and a
// plain MLP with the activation function xIELU, which has parameters. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type Apertus struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "apertus",
		Architectures: []string{"ApertusForCausalLM"},
		GGUF:          []gguf.Map{ggufApertus},
		Docs:          arch.Docs{Variants: "xIELU with parameters by layer, biases, tied embeddings"},
	}, ParseApertus)
}

// ParseApertus parses the config.json of an apertus model.
func ParseApertus(data []byte) (*Apertus, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	if !o.Has("rope_parameters") && !o.Has("rope_scaling") {
		// Its theta wins over rope_theta, as in transformers.
		o.Keys["rope_parameters"] = json.RawMessage(`{"rope_type": "llama3", "rope_theta": 12e6, "factor": 8,
			"original_max_position_embeddings": 8192, "low_freq_factor": 1, "high_freq_factor": 4}`)
	}
	d := config.Defaults{Class: "ApertusForCausalLM", Context: 1 << 16, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2}}
	return config.Done(&Apertus{config.ParseDense(top, o, d, config.RopeOptions{Theta: 12e6}, "xielu")}, o)
}

func (m *Apertus) Facts() config.Facts { return m.FactsAs("apertus", m.Rope, m.Table()) }

func (m *Apertus) Table() table.Table {
	d := m.Decoder()
	return d.OwnTable("apertus", config.Own{Network: func(t *table.Table, layer string, _ int) bool {
		m.AddPlainMLP(t, layer+"mlp."+d.Plain.Up, layer+"mlp."+d.Plain.Down)
		for _, name := range []string{"alpha_p", "alpha_n", "beta", "eps"} {
			s := t.Add(layer+"mlp.act_fn."+name, table.Whole, 1)
			s.Reshape = [][]int64{{}} // transformers saves constants without dimensions
		}
		return true
	}})
}

// Decoder implements [arch.Described].
func (m *Apertus) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norms:     decoder.Norms{Mixer: "attention_layernorm", Network: "feedforward_layernorm"},
		HeadNorms: decoder.QK,
		Plain:     decoder.UpDown,
	}}
}

// ggufApertus is the mapping of apertus. The parameters of its activation function are metadata.
// https://github.com/ggml-org/llama.cpp/blob/master/conversion/apertus.py
var ggufApertus = gguf.Map{
	Architecture: "apertus",
	Config: map[string]any{
		"model_type": "apertus", "architectures": []string{"ApertusForCausalLM"}, "hidden_act": "xielu",
	},
	Keys: gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values,
		gguf.Linears(gguf.Op{}, "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj"), gguf.Names(gguf.Op{},
			"attn_norm.weight", "attention_layernorm.weight", "ffn_norm.weight", "feedforward_layernorm.weight",
			"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")),
	Numbers: []gguf.Key{
		{Key: "xielu.alpha_p", To: "model.layers.*.mlp.act_fn.alpha_p"},
		{Key: "xielu.alpha_n", To: "model.layers.*.mlp.act_fn.alpha_n"},
		{Key: "xielu.beta", To: "model.layers.*.mlp.act_fn.beta"},
		{Key: "xielu.eps", To: "model.layers.*.mlp.act_fn.eps"},
	},
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		if err := gguf.SetFactors(c, f); err != nil {
			return err
		}
		if c["rope_scaling"] == nil {
			c["rope_scaling"] = map[string]any{"rope_type": "default"} // without one the type has a rope of its own
		}
		return nil
	},
}
