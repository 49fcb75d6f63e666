package arch

import (
	"slices"

	"github.com/ingotml/ingot/arch/decoder"
)

// Qwen3Moe is the configuration of model type "qwen3_moe": [Qwen3] with experts in place of the MLP in some or all
// layers. The router's probabilities are a softmax over all experts. With NormTopK those of the selected experts are
// normalized to sum to 1.
type Qwen3Moe struct {
	Common
	Intermediate int // of dense layers
	Activation   string
	Rope         Rope
	Window       int // of every layer, as in [Qwen3]; 0 = none
	Experts      Experts
	Sparse       []bool // by layer: it has experts
}

func init() {
	register(Arch{
		ModelType:     "qwen3_moe",
		Plain:         true,
		Aliases:       []string{"qwen3_vl_moe", "qwen3_vl_moe_text"},
		Towers:        []string{"qwen3_vl_moe"},
		Architectures: []string{"Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen3Moe(config) },
		GGUF:          []GGUF{ggufQwen3Moe},
		Chat:          &qwen3Chat,
		Docs: Docs{
			Variants: "stacked, fused (also transposed) or separate experts; dense layers in between; text of Qwen3-VL",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseQwen3Moe parses the config.json of a qwen3_moe model.
func ParseQwen3Moe(config []byte) (*Qwen3Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Qwen3Moe{
		Common:     parseCommon(top, o, commonDefaults{class: "Qwen3MoeForCausalLM", kv: 4, ctx: 32768, eps: 1e-6}),
		Activation: o.activation("hidden_act", silu...),
		Experts: Experts{
			PerToken:     o.integer("num_experts_per_tok", 8, 1, maxExperts),
			Intermediate: o.integer("moe_intermediate_size", 768, 1, maxWidth),
			NormTopK:     o.boolean("norm_topk_prob", false),
		},
	}
	m.Intermediate = o.integer("intermediate_size", 6144, 1, maxWidth)
	m.Rope = parseRope(o, m.Context, ropeOptions{headDim: m.HeadDim})
	m.Rope.ignorePartial(o)
	m.Window, _ = parseWindow(o, m.Layers, 0)
	m.Experts.Count, m.Sparse = parseSparse(o, m.Layers, 128)
	o.checkExperts("num_experts", m.Experts, m.Hidden)
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseSparse reads the number of experts, and which layers have them.
func parseSparse(o object, layers, def int) (experts int, sparse []bool) {
	// transformers 5 treats the two keys as synonyms.
	experts = o.integer("num_experts", o.integer("num_local_experts", def, 0, maxExperts), 0, maxExperts)
	step := o.integer("decoder_sparse_step", 1, 1, maxLayers)
	dense := o.integers("mlp_only_layers", maxLayers, 0, maxLayers)
	sparse = make([]bool, layers)
	for i := range sparse {
		sparse[i] = experts > 0 && (i+1)%step == 0 && !slices.Contains(dense, i)
	}
	return experts, sparse
}

// State implements [Model].
func (m *Qwen3Moe) State() []LayerState { return m.kvStates(m.Window, func(int) bool { return true }) }

// Facts implements [Model].
func (m *Qwen3Moe) Facts() Facts { return m.facts("qwen3_moe", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Qwen3Moe) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model].
func (m *Qwen3Moe) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("qwen3_moe", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.attention(t, layer+"self_attn", m.queries(), false)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if !m.Sparse[i] {
			m.mlp(t, layer+"mlp", m.Intermediate)
			return
		}
		t.mixture(layer+"mlp", Mixture{Experts: m.Experts}, m.Hidden)
	})
	t.transposesExperts("", "") // Qwen3-VL is published so
	t.dropTowers("qwen3_moe")
	return t
}

// Decoder implements [Described].
func (m *Qwen3Moe) Decoder() Decoder {
	return Decoder{
		Dense:       &Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope},
		Mixture:     &Mixture{Experts: m.Experts, Sparse: m.Sparse},
		Description: decoder.Description{HeadNorms: decoder.QK},
	}
}
