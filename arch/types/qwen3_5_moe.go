package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen35Moe is the configuration of model type "qwen3_5_moe" and of its predecessor "qwen3_next": [Qwen35] with experts
// in place of the MLP, and a shared expert that every token passes, scaled by a sigmoid gate. The router's
// probabilities are a softmax over all experts. With NormTopK those of the selected experts are normalized to sum to 1.
type Qwen35Moe struct {
	Qwen35
	Experts            config.Experts
	SharedIntermediate int    // width of the shared expert; 0 = none
	Sparse             []bool // by layer: it has experts; all layers do, except in Qwen3-Next
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen3_5_moe",
		Aliases:       []string{"qwen3_5_moe_text", "qwen3_next"},
		Architectures: []string{"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM", "Qwen3NextForCausalLM"},
		GGUF:          []gguf.Map{ggufQwen35Moe, ggufQwen3Next},
		Chat: &arch.Chat{
			Marks: []string{"qwen3next", "qwen3_next"}, Parser: "qwen3.5", Renderer: "qwen3.5", Thinks: true,
		},
		Published: table.Published{NestedMLX: true},
		Variants: map[string]table.Published{
			"qwen3_5_moe_text": {},
			"qwen3_next": {
				Experts:     table.PerExpert,
				Projections: table.Fused,
				Apart:       true,
				Shifted:     true,
			},
		},
		Fixed: []arch.Fixed{
			{Key: "output_gate_type", Values: []string{`"silu"`, `"swish"`}},
		},
		Docs: arch.Docs{
			Variants: "`qwen3_5` with experts in every layout and a shared one; `qwen3_next` keys and dense layers in between",
			Rules:    qwen35RulesDoc,
			Draft:    qwen35DraftDoc,
			Vision:   "Qwen 3.5",
		},
	}, ParseQwen35Moe)
}

// ParseQwen35Moe parses the config.json of a qwen3_5_moe or qwen3_next model.
func ParseQwen35Moe(data []byte) (*Qwen35Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "Qwen3_5MoeForConditionalGeneration", Vocab: 248320, Hidden: 2048, Layers: 40, Heads: 16, KVHeads: 2,
		HeadDim: 256,
		Context: 32768, NormEps: 1e-6,
	}
	experts, perToken := 256, 8
	if top.String("model_type", "") == "qwen3_next" {
		d.Class, d.Vocab, d.Layers = "Qwen3NextForCausalLM", 151936, 48
		experts, perToken = 512, 10
	}
	m := &Qwen35Moe{Qwen35: parseQwen35(top, o, d)}
	m.Intermediate = o.Integer("intermediate_size", 5632, 1, config.MaxWidth)
	width := 512
	if o.Has("intermediate_size") {
		width = m.Intermediate
	}
	m.Experts = config.Experts{
		PerToken:     o.Integer("num_experts_per_tok", perToken, 1, config.MaxExperts),
		Intermediate: o.Integer("moe_intermediate_size", width, 1, config.MaxWidth),
		NormTopK:     o.Bool("norm_topk_prob", true),
	}
	m.SharedIntermediate = o.Integer("shared_expert_intermediate_size", width, 0, config.MaxWidth)
	m.Experts.Count, m.Sparse = config.ParseSparse(o, m.Layers, experts)
	o.CheckExperts("num_experts", m.Experts, m.Hidden)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// Mixture describes the feed-forward block of layers with experts.
func (m *Qwen35Moe) Mixture() config.Mixture {
	return config.Mixture{
		Experts: m.Experts, Shared: m.SharedIntermediate, SharedGate: true, SharedBias: m.MLPBias, Sparse: m.Sparse,
	}
}

// HasExperts reports whether a layer has experts. Layer -1 is the MTP head.
func (m *Qwen35Moe) HasExperts(layer int) bool {
	return m.Experts.Count > 0 && (layer < 0 || m.Sparse[layer])
}

func (m *Qwen35Moe) Facts() config.Facts { return m.FactsAs("qwen3_5_moe", m.Rope, m.Table()) }

func (m *Qwen35Moe) Table() table.Table {
	return m.table("qwen3_5_moe", func(t *table.Table, layer string, i int) {
		if !m.HasExperts(i) {
			m.AddMLP(t, layer+"mlp", m.Intermediate)
			return
		}
		m.Mixture().AddTo(t, layer+"mlp", m.Hidden)
	})
}
