package arch

import "github.com/ingotml/ingot/arch/decoder"

// Olmoe is the configuration of model type "olmoe": a pre-norm decoder with experts in every layer and norms of whole
// rows of queries and keys. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmoe struct {
	Dense
	Mixture Mixture
	Clip    float64 // limit of the size of queries, keys and values; 0 = none
}

func init() {
	register(Arch{
		ModelType:     "olmoe",
		Plain:         true,
		Architectures: []string{"OlmoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOlmoe(config) },
		GGUF:          []GGUF{ggufOlmoe},
		Docs: Docs{
			Variants: "stacked, fused or separate experts, clipped queries, keys and values, biases",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseOlmoe parses the config.json of an olmoe model.
func ParseOlmoe(config []byte) (*Olmoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "OlmoeForCausalLM", ctx: 4096, eps: 1e-5, eos: []int32{50279}}
	m := &Olmoe{Dense: parseDecoder(top, o, d, ropeOptions{}), Clip: o.limit("clip_qkv", 0)}
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 64, perToken: 8}, "intermediate_size")
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Olmoe) Facts() Facts { return m.facts("olmoe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Olmoe) Table() Table { return m.decodes("olmoe", m.Mixture, m.wholeNorms) }

// Decoder implements [Described].
func (m *Olmoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Clip:      m.Clip,
	}}
}
