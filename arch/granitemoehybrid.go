package arch

// GraniteMoeHybrid is the configuration of model type "granitemoehybrid" (Granite 4): [Granite] with layers of
// attention or a selective scan, and an MLP for every token beside the experts, of which there may be none. Absent keys
// have the defaults of transformers 5.23; sizes are required.
type GraniteMoeHybrid struct {
	Granite
	Full      []bool // by layer: attention, else a scan
	Unrotated bool   // attention has no positions
	SSM       SSM
	Mixture   *Mixture // nil = no experts
	Shared    int      // width of the MLP for every token
}

func init() {
	register(Arch{
		ModelType:     "granitemoehybrid",
		Architectures: []string{"GraniteMoeHybridForCausalLM"},
		Names:         []string{"layer_types", "layers_block_type"},
		Parse:         func(config []byte) (Model, error) { return ParseGraniteMoeHybrid(config) },
		GGUF:          []GGUF{ggufGraniteHybrid, ggufGraniteHybridDense},
		Docs: Docs{
			Variants: "Mamba 2 layers with some of attention, with rope or without positions; experts or none; multipliers; " +
				"biases; tied embeddings",
			Rules: "generic, also for experts",
		},
	})
}

// ParseGraniteMoeHybrid parses the config.json of a granitemoehybrid model.
func ParseGraniteMoeHybrid(config []byte) (*GraniteMoeHybrid, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "GraniteMoeHybridForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	m := &GraniteMoeHybrid{Granite: Granite{
		Dense:          parseDecoder(top, o, d, ropeOptions{}),
		EmbeddingScale: o.above("embedding_multiplier", 1, 0),
		AttentionScale: o.above("attention_multiplier", 1, 0),
		ResidualScale:  o.above("residual_multiplier", 1, 0),
		LogitDivisor:   o.above("logits_scaling", 1, 0),
	}}
	m.Full, _ = o.hybrid("layer_types", m.Layers)
	m.Unrotated = o.str("position_embedding_type", "") != "rope"
	m.Shared = o.integer("shared_intermediate_size", 1024, 1, maxWidth)
	if o.integer("num_local_experts", 8, 0, maxExperts) > 0 {
		m.Mixture = &Mixture{}
		m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 8, perToken: 2}, "intermediate_size")
		m.Mixture.Experts.NormTopK = true
	}
	m.SSM = parseSSM(o, hybridSSM, ssmDefaults{heads: 128, groups: 1, state: 256},
		o.integer("mamba_expand", 2, 1, 64)*m.Hidden)
	return parsed(m, o)
}

// State implements [Model].
func (m *GraniteMoeHybrid) State() []LayerState { return m.hybridStates(m.Full, m.SSM.state()) }

// Facts implements [Model].
func (m *GraniteMoeHybrid) Facts() Facts { return m.facts("granitemoehybrid", m.Rope, m.Table()) }

// Table implements [Model].
func (m *GraniteMoeHybrid) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("granitemoehybrid", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		if m.Full[i] {
			m.projections(t, layer+"self_attn", m.queries())
		} else {
			t.ssm(layer+"mamba", m.SSM, hidden)
		}
		t.norm(layer+"post_attention_layernorm", hidden, false)
		if m.Mixture != nil {
			t.mixture(layer+"block_sparse_moe", *m.Mixture, m.Hidden)
		}
		m.mlp(t, layer+"shared_mlp", m.Shared)
		t.fuses(layer+"shared_mlp.input_linear", layer+"shared_mlp.gate_proj", layer+"shared_mlp.up_proj")
	})
	const block = ".block_sparse_moe."
	t.also(
		[]string{
			block + "gate.", block + "router.layer.", block + "experts.gate_up_proj", block + "input_linear.weight",
			block + "experts.down_proj", block + "output_linear.weight", ".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
		},
		[]string{block + "gate.", block + "router."},
	)
	return t
}
