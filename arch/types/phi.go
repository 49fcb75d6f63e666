package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Phi is the configuration of model type "phi" (Phi-1, Phi-1.5, Phi-2): LayerNorms, biases, a rope that rotates a part
// of each head, and a plain MLP that reads the same norm as attention. The first publications ("phi-msft") have other
// keys, and queries, keys and values in one tensor. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Phi struct {
	config.Dense
	QKNorm bool // LayerNorms of query and key heads
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "phi",
		Plain:         true,
		Aliases:       []string{"phi-msft"},
		Architectures: []string{"PhiForCausalLM"},
		Variants: map[string]table.Published{
			"phi-msft": {
				Projections: table.AsPublishedFirst,
				HuggingFace: []string{"model.", "transformer."},
				MLX:         []string{"model.", "transformer."},
			},
		},
		Idle: []arch.Idle{
			{Why: "heads have hidden_size / num_attention_heads channels, or the reference fails", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{Variants: "Phi-1, Phi-1.5, Phi-2, also as published first; parallel blocks, norms of heads"},
	}, ParsePhi)
}

// ParsePhi parses the config.json of a phi model.
func ParsePhi(data []byte) (*Phi, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"num_key_value_heads", "n_head_kv", "max_position_embeddings", "n_positions", "hidden_act", "activation_function",
		"rms_norm_eps", "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	r := config.RopeOptions{Partial: 0.5}
	m := &Phi{
		Dense: config.Dense{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: "PhiForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2},
			}),
			Activation: o.PlainActivation("hidden_act", "gelu_new"),
		},
		QKNorm: o.Bool("qk_layernorm", false),
	}
	if m.Intermediate = o.Integer("intermediate_size", 4*m.Hidden, 1, config.MaxWidth); o.Has("rotary_dim") {
		r.Partial = float64(o.Integer("rotary_dim", 0, 1, m.HeadDim)) / float64(m.HeadDim)
	}
	m.ReadRope(o, r)
	m.AttentionBias, m.OutputBias, m.MLPBias, m.NormName = true, true, true, "final_layernorm"
	if m.Heads*m.HeadDim != m.Hidden {
		o.Fail("head_dim", fmt.Sprintf("be hidden_size/num_attention_heads = %d", m.Hidden/m.Heads))
	}
	return config.Done(m, o)
}

func (m *Phi) Facts() config.Facts { return m.FactsAs("phi", m.Rope, m.Table()) }

// phiNames are the names of the class of transformers, and phiFirstNames those of the first publications.
var (
	phiNames = []string{
		"self_attn.o_proj.", "self_attn.dense.", "mlp.up_proj.", "mlp.fc1.", "mlp.down_proj.", "mlp.fc2.",
	}
	phiFirstNames = []string{
		"model.final_layernorm.", "lm_head.ln.", "lm_head.", "lm_head.linear.", "embed_tokens.", "embd.wte.", "layers.", "h.",
		"input_layernorm.", "ln.", "self_attn.q_proj.", "mixer.Wqkv.", "self_attn.k_proj.", "mixer.Wqkv.",
		"self_attn.v_proj.", "mixer.Wqkv.", "self_attn.o_proj.", "mixer.out_proj.", "mlp.up_proj.", "mlp.fc1.",
		"mlp.down_proj.", "mlp.fc2.",
	}
)

func (m *Phi) Table() table.Table {
	t := m.Decoder().Table("phi")
	t.Parts[0].Accept = append(t.Parts[0].Accept, "transformer.")
	t.PublishedAs(table.AsPublished, phiNames)
	t.PublishedAs(table.AsPublishedFirst, phiFirstNames, m.JoinedQKV())
	t.Drop(table.InvFreq, m.Prefix+"h.*.mixer.rotary_emb.inv_freq")
	return t
}

func (m *Phi) Decoder() config.Decoder {
	d := decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		Norms:    decoder.BeforeShared,
		Parallel: true,
		Plain:    decoder.UpDown,
		HeadBias: true,
	}
	if m.QKNorm {
		d.HeadNorms = decoder.HeadNorms{Q: "q_layernorm", K: "k_layernorm"}
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}
