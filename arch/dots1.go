package arch

import "github.com/ingotml/ingot/arch/decoder"

// Dots1 is the configuration of model type "dots1" (dots.llm1): a pre-norm decoder with norms of queries and keys,
// experts of a sigmoid router, shared experts and dense first layers. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type Dots1 struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "dots1",
		Plain:         true,
		Architectures: []string{"Dots1ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseDots1(config) },
		GGUF:          []GGUF{ggufDots1},
		Docs: Docs{
			Variants: "groups of experts, shared experts, dense first layers, sliding windows, biases",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseDots1 parses the config.json of a dots1 model.
func ParseDots1(config []byte) (*Dots1, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Dots1{Dense: parseDecoder(top, o, commonDefaults{
		class: "Dots1ForCausalLM", kv: 32, ctx: 2048, eps: 1e-6,
	}, ropeOptions{})}
	m.Intermediate = o.integer("intermediate_size", 10944, 1, maxWidth)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{width: 1408})
	if m.Mixture.Shared == 0 {
		o.missing("n_shared_experts")
	}
	m.Mixture.parseDense(o, 0)
	first := o.integer("max_window_layers", 62, 0, maxLayers)
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = i >= first
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		}
	}
	m.slide(o.window("sliding_window", 4096), sliding)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Dots1) Facts() Facts { return m.facts("dots1", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Dots1) Table() Table {
	t := m.decodes("dots1", m.Mixture, m.headNorms)
	t.stacksAsFused()
	return t
}

// Decoder implements [Described].
func (m *Dots1) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{HeadNorms: decoder.QK}}
}
