package arch

import (
	"fmt"

	"github.com/ingotml/ingot/arch/decoder"
)

// Phi is the configuration of model type "phi" (Phi-1, Phi-1.5, Phi-2): LayerNorms, biases, a rope that rotates a part
// of each head, and a plain MLP that reads the same norm as attention. The first publications ("phi-msft") have other
// keys, and queries, keys and values in one tensor. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Phi struct {
	Dense
	QKNorm bool // LayerNorms of query and key heads
}

func init() {
	register(Arch{
		ModelType:     "phi",
		Plain:         true,
		Aliases:       []string{"phi-msft"},
		Architectures: []string{"PhiForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParsePhi(config) },
		Docs:          Docs{Variants: "Phi-1, Phi-1.5, Phi-2, also as published first; parallel blocks, norms of heads"},
	})
}

// ParsePhi parses the config.json of a phi model.
func ParsePhi(config []byte) (*Phi, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"num_key_value_heads", "n_head_kv", "max_position_embeddings", "n_positions", "hidden_act", "activation_function",
		"rms_norm_eps", "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	r := ropeOptions{partial: 0.5}
	m := &Phi{
		Dense: Dense{
			Common: parseCommon(top, o, commonDefaults{
				class: "PhiForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
			}),
			Activation: o.plainActivation("hidden_act", "gelu_new"),
		},
		QKNorm: o.boolean("qk_layernorm", false),
	}
	if m.Intermediate = o.integer("intermediate_size", 4*m.Hidden, 1, maxWidth); o.has("rotary_dim") {
		r.partial = float64(o.integer("rotary_dim", 0, 1, m.HeadDim)) / float64(m.HeadDim)
	}
	m.rope(o, r)
	m.AttentionBias, m.OutputBias, m.MLPBias, m.NormName = true, true, true, "final_layernorm"
	if m.Heads*m.HeadDim != m.Hidden {
		o.fail("head_dim", fmt.Sprintf("be hidden_size/num_attention_heads = %d", m.Hidden/m.Heads))
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Phi) Facts() Facts { return m.facts("phi", m.Rope, m.Table()) }

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

// Table implements [Model].
func (m *Phi) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("phi", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		if m.QKNorm {
			t.layerNorm(layer+"self_attn.q_layernorm", int64(m.HeadDim))
			t.layerNorm(layer+"self_attn.k_layernorm", int64(m.HeadDim))
		}
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
	})
	m.headBias(&t)
	t.Parts[0].Accept = append(t.Parts[0].Accept, "transformer.")
	t.publishedAs(asPublished, phiNames)
	t.publishedAs(asPublishedFirst, phiFirstNames, m.joinedQKV())
	t.drop(dropInvFreq, m.Prefix+"h.*.mixer.rotary_emb.inv_freq")
	return t
}

// Decoder implements [Described].
func (m *Phi) Decoder() Decoder {
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
	return Decoder{Dense: &m.Dense, Description: d}
}
