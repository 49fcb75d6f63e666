package arch

import "github.com/ingotml/ingot/arch/decoder"

// Cohere2 is the configuration of model type "cohere2" (Command R7B, Command A): cohere with three sliding layers
// before each full one, which has no rope. Absent keys have the defaults of transformers 5.23; sizes are required.
type Cohere2 struct {
	Dense
	LogitScale float64
}

func init() {
	register(Arch{
		ModelType:     "cohere2",
		Plain:         true,
		Architectures: []string{"Cohere2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseCohere2(config) },
		GGUF:          []GGUF{ggufCohere2},
		Docs:          Docs{Variants: "parallel blocks, sliding layers, full layers without rope, biases, untied embeddings"},
	})
}

// ParseCohere2 parses the config.json of a cohere2 model.
func ParseCohere2(config []byte) (*Cohere2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Cohere2{
		Dense:      parseCohere(top, o, "Cohere2ForCausalLM", ropeOptions{}),
		LogitScale: o.above("logit_scale", 0.0625, 0),
	}
	m.slide(o.integer("sliding_window", 4096, 1, maxContext), parsePattern(o, m.Layers, 4))
	return parsed(m, o)
}

// Rotates reports whether a layer has a rope: the sliding ones.
func (m *Cohere2) Rotates(i int) bool { return m.Window > 0 && m.Sliding[i] }

// Facts implements [Model].
func (m *Cohere2) Facts() Facts { return m.facts("cohere2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Cohere2) Table() Table { return m.parallel("cohere2", func(*Table, string) {}) }

// Decoder implements [Described].
func (m *Cohere2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		RopeLayers:  m.slidingLayers(),
		LogitScale:  m.LogitScale,
	}}
}
