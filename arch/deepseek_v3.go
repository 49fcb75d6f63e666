package arch

// DeepseekV3 is the configuration of model type "deepseek_v3" (DeepSeek V3 and R1) and of Kimi K2: latent attention,
// and experts that a sigmoid router chooses by groups. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type DeepseekV3 struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "deepseek_v3",
		Towers:        []string{"kimi_k25"},
		Aliases:       []string{"kimi_k2", "kimi_k25"},
		Architectures: []string{"DeepseekV3ForCausalLM", "KimiK25ForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseDeepseekV3(config) },
		GGUF:          []GGUF{ggufDeepseek2},
		Docs: Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, yarn; " +
				"`kimi_k2`, text of Kimi K2.5",
			Rules: "generic, also for experts",
			Draft: nextDraftDoc,
		},
	})
}

// ParseDeepseekV3 parses the config.json of a deepseek_v3 or kimi_k2 model.
func ParseDeepseekV3(config []byte) (*DeepseekV3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV3{parseLatent(top, o, commonDefaults{
		class: "DeepseekV3ForCausalLM", ctx: 4096, eps: 1e-6, bos: []int32{0}, eos: []int32{1},
	}, latentDefaults{query: 1536, kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{})}
	m.Latent.Interleaved = o.boolean("rope_interleave", true)
	m.NextLayers = o.integerOf(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers")
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 256, perToken: 8, width: 2048, sumToOne: true, scaling: 2.5, shared: 1, groups: 8, topGroups: 4,
	})
	m.Mixture.parseDense(o, 3)
	o.checkLayerFrequency()
	return parsed(m, o)
}

// checkLayerFrequency refuses a key of DeepSeek's configurations that transformers ignores.
func (o object) checkLayerFrequency() {
	if o.integer("moe_layer_freq", 1, 0, maxLayers) != 1 {
		o.fail("moe_layer_freq", "be 1: all layers after the dense ones have experts")
	}
}

// Facts implements [Model].
func (m *DeepseekV3) Facts() Facts { return m.facts("deepseek_v3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *DeepseekV3) Table() Table {
	t := m.table("deepseek_v3")
	t.dropTowers("deepseek_v3")
	t.Spellings = []string{"language_model.model.blocks.", "language_model.model.layers."} // of some files of Kimi K2.5
	return t
}
