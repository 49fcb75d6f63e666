package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// GPTJ is the configuration of model type "gptj" (GPT-J): LayerNorms, a interleaved rope that rotates a part of each
// head, and a plain MLP that reads the same norm as attention. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type GPTJ struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gptj",
		Plain:         true,
		Architectures: []string{"GPTJForCausalLM"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		Fixed: []arch.Fixed{
			{Key: "scale_attn_weights", Values: []string{"true"}},
		},
		Docs: arch.Docs{Variants: "parallel blocks, partial interleaved rope, head with a bias"},
	}, ParseGPTJ)
}

// ParseGPTJ parses the config.json of a gptj model.
func ParseGPTJ(data []byte) (*GPTJ, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	end := []int32{50256}
	d, o := parseGPT(top, o, "gelu_new", config.Defaults{
		Class: "GPTJForCausalLM", Context: 2048, NormEps: 1e-5, BOS: end, EOS: end,
	})
	m := &GPTJ{d}
	m.AttentionBias, m.OutputBias = false, false
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be absent")
	}
	rotated := o.Integer("rotary_dim", 64, 2, m.HeadDim)
	if rotated%2 != 0 {
		o.Fail("rotary_dim", "be even")
	}
	m.Rope.PartialFactor = float64(rotated) / float64(m.HeadDim)
	return config.Done(m, o)
}

func (m *GPTJ) Facts() config.Facts { return m.FactsAs("gptj", m.Rope, m.Table()) }

// gptJNames are the published names of a table's tensors.
var gptJNames = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "layers.", "h.", "input_layernorm.", "ln_1.",
	"self_attn.o_proj.", "attn.out_proj.", "self_attn.", "attn.", "mlp.up_proj.", "mlp.fc_in.", "mlp.down_proj.",
	"mlp.fc_out.",
}

func (m *GPTJ) Table() table.Table {
	t := m.Decoder().Table("gptj")
	t.PublishedAs(table.AsPublished, gptJNames)
	t.Drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

func (m *GPTJ) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true, Bias: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		Plain:       decoder.UpDown,
		HeadBias:    true,
	}}
}
