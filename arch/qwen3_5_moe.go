package arch

// Qwen35Moe is the configuration of model type "qwen3_5_moe" and of its predecessor "qwen3_next": [Qwen35] with experts
// in place of the MLP, and a shared expert that every token passes, scaled by a sigmoid gate. The router's
// probabilities are a softmax over all experts. With NormTopK those of the selected experts are normalized to sum to 1.
type Qwen35Moe struct {
	Qwen35
	Experts            Experts
	SharedIntermediate int    // width of the shared expert; 0 = none
	Sparse             []bool // by layer: it has experts; all layers do, except in Qwen3-Next
}

func init() {
	register(Arch{
		ModelType:     "qwen3_5_moe",
		Aliases:       []string{"qwen3_5_moe_text", "qwen3_next"},
		Architectures: []string{"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM", "Qwen3NextForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen35Moe(config) },
		GGUF:          []GGUF{ggufQwen35Moe, ggufQwen3Next},
		Chat:          &qwen35Chat,
		Docs: Docs{
			Variants: "`qwen3_5` with experts in every layout and a shared one; `qwen3_next` keys and dense layers in between",
			Rules:    qwen35RulesDoc,
			Draft:    qwen35DraftDoc,
			Vision:   "Qwen 3.5",
		},
	})
}

// ParseQwen35Moe parses the config.json of a qwen3_5_moe or qwen3_next model.
func ParseQwen35Moe(config []byte) (*Qwen35Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "Qwen3_5MoeForConditionalGeneration", vocab: 248320, hidden: 2048, layers: 40, heads: 16, kv: 2, dim: 256,
		ctx: 32768, eps: 1e-6,
	}
	experts, perToken := 256, 8
	if top.str("model_type", "") == "qwen3_next" {
		d.class, d.vocab, d.layers = "Qwen3NextForCausalLM", 151936, 48
		experts, perToken = 512, 10
	}
	m := &Qwen35Moe{Qwen35: parseQwen35(top, o, d)}
	m.Intermediate = o.integer("intermediate_size", 5632, 1, maxWidth)
	width := 512
	if o.has("intermediate_size") {
		width = m.Intermediate
	}
	m.Experts = Experts{
		PerToken:     o.integer("num_experts_per_tok", perToken, 1, maxExperts),
		Intermediate: o.integer("moe_intermediate_size", width, 1, maxWidth),
		NormTopK:     o.boolean("norm_topk_prob", true),
	}
	m.SharedIntermediate = o.integer("shared_expert_intermediate_size", width, 0, maxWidth)
	m.Experts.Count, m.Sparse = parseSparse(o, m.Layers, experts)
	o.checkExperts("num_experts", m.Experts, m.Hidden)
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// Mixture describes the feed-forward block of layers with experts.
func (m *Qwen35Moe) Mixture() Mixture {
	return Mixture{
		Experts: m.Experts, Shared: m.SharedIntermediate, SharedGate: true, SharedBias: m.MLPBias, Sparse: m.Sparse,
	}
}

// HasExperts reports whether a layer has experts. Layer -1 is the MTP head.
func (m *Qwen35Moe) HasExperts(layer int) bool {
	return m.Experts.Count > 0 && (layer < 0 || m.Sparse[layer])
}

// Facts implements [Model].
func (m *Qwen35Moe) Facts() Facts { return m.facts("qwen3_5_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Qwen35Moe) Table() Table {
	return m.table("qwen3_5_moe", func(t *Table, layer string, i int) {
		if !m.HasExperts(i) {
			m.mlp(t, layer+"mlp", m.Intermediate)
			return
		}
		t.mixture(layer+"mlp", m.Mixture(), m.Hidden)
	})
}
