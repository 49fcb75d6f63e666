package arch

import "encoding/json"

// Mistral4 is the configuration of model type "mistral4" (Mistral Small 4), the text part: latent attention whose
// queries grow with their position, and experts that a softmax router chooses by groups. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Mistral4 struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "mistral4",
		Architectures: []string{"Mistral4ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMistral4(config) },
		GGUF:          []GGUF{ggufMistral4},
		TextOnly:      true,
		Docs: Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, " +
				"yarn, growing queries",
			Rules: "generic, also for experts",
		},
	})
}

// ParseMistral4 parses the config.json of a mistral4 model.
func ParseMistral4(config []byte) (*Mistral4, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "Mistral4ForCausalLM", ctx: 1 << 20, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	if !o.has("rope_parameters") && !o.has("rope_scaling") {
		o.raw["rope_parameters"] = json.RawMessage(`{"rope_type": "yarn", "rope_theta": 1e4, "factor": 128,
			"original_max_position_embeddings": 8192, "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}`)
	}
	// transformers 5.23 gives the default type, and linear, as many frequencies as a whole head has.
	m := &Mistral4{parseLatent(top, o, d, latentDefaults{query: 1024, kv: 256, nope: 64, rope: 64, value: 128},
		ropeOptions{types: []RopeType{RopeYarn}})}
	m.Latent.Interleaved = o.boolean("rope_interleave", true)
	m.Latent.GrowthBeta, m.Latent.GrowthContext = parseGrowth(o, m.Context)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 128, perToken: 4, width: 2048, sumToOne: true, scaling: 1, shared: 1,
	})
	m.Mixture.Router.Sigmoid, m.Mixture.Router.Correction, m.Mixture.Router.Float32 = false, false, false
	m.Mixture.parseDense(o, 0)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Mistral4) Facts() Facts { return m.facts("mistral4", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Mistral4) Table() Table {
	t := m.table("mistral4")
	t.dropTowers("mistral4")
	return t
}
