package arch

// Glm4MoeLite is the configuration of model type "glm4_moe_lite" (GLM-4.7-Flash): latent attention, and experts of a
// sigmoid router. Absent keys have the defaults of transformers 5.23; sizes are required.
type Glm4MoeLite struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "glm4_moe_lite",
		Architectures: []string{"Glm4MoeLiteForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGlm4MoeLite(config) },
		GGUF:          []GGUF{ggufDeepseek2},
		Chat:          &Chat{Marks: []string{"glm4", "glm-4"}, Parser: "glm-4.7", Renderer: "glm-4.7", Thinks: true},
		Docs: Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers",
			Rules:    "generic, also for experts",
			Draft:    nextDraftDoc,
		},
	})
}

// ParseGlm4MoeLite parses the config.json of a glm4_moe_lite model.
func ParseGlm4MoeLite(config []byte) (*Glm4MoeLite, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Glm4MoeLite{parseLatent(top, o, commonDefaults{
		class: "Glm4MoeLiteForCausalLM", ctx: 202752, eps: 1e-5, bos: []int32{0}, eos: []int32{1},
	}, latentDefaults{query: 768, kv: 512, nope: 192, rope: 64, value: 256}, ropeOptions{})}
	m.Latent.Interleaved = o.boolean("rope_interleave", true)
	m.NextLayers = o.integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 64, perToken: 4, width: 1536, sumToOne: true, scaling: 1.8, shared: 1,
	})
	m.Mixture.parseDense(o, 1)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Glm4MoeLite) Facts() Facts { return m.facts("glm4_moe_lite", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Glm4MoeLite) Table() Table { return m.table("glm4_moe_lite") }
