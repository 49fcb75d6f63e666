package arch

// Qwen2Moe is the configuration of model type "qwen2_moe": [Qwen2] with experts in some or all layers, and a shared
// expert whose output a gate weights. Absent keys have the defaults of transformers 5.23; sizes are required.
type Qwen2Moe struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "qwen2_moe",
		Plain:         true,
		Architectures: []string{"Qwen2MoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen2Moe(config) },
		GGUF:          []GGUF{ggufQwen2Moe},
		Docs: Docs{
			Variants: "shared experts with a gate, stacked, fused or separate experts, dense layers in between, sliding windows",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseQwen2Moe parses the config.json of a qwen2_moe model.
func ParseQwen2Moe(config []byte) (*Qwen2Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Qwen2Moe{Dense: parseDecoder(top, o, commonDefaults{
		class: "Qwen2MoeForCausalLM", kv: 16, ctx: 32768, eps: 1e-6,
	}, ropeOptions{})}
	m.AttentionBias, m.OutputBias = o.boolean("qkv_bias", true), false
	m.Intermediate = o.integer("intermediate_size", 5632, 1, maxWidth)
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 60, perToken: 4, width: 1408}, "moe_intermediate_size")
	_, x.Sparse = parseSparse(o, m.Layers, x.Experts.Count)
	x.Shared, x.SharedGate = o.integer("shared_expert_intermediate_size", 5632, 1, maxWidth), true
	if o.boolean("use_sliding_window", false) {
		m.slide(o.window("sliding_window", 4096), alternate(o, m.Layers))
	}
	return parsed(m, o)
}

// alternate returns which layers slide: those of layer_types, or every other one below max_window_layers.
func alternate(o object, layers int) []bool {
	kinds := o.kinds("layer_types", layers, fullAttention, slidingAttention)
	below := o.integer("max_window_layers", 28, 0, maxLayers)
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = i%2 == 0 && i < below
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		}
	}
	return sliding
}

// Facts implements [Model].
func (m *Qwen2Moe) Facts() Facts { return m.facts("qwen2_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Qwen2Moe) Table() Table { return m.decodes("qwen2_moe", m.Mixture, nil) }

// Decoder implements [Described].
func (m *Qwen2Moe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
