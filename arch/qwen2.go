package arch

// Qwen2 is the configuration of model type "qwen2": a pre-norm decoder with grouped-query attention, biases of queries,
// keys and values, and a gated MLP. Absent keys have the defaults of transformers 5.23; sizes are required.
type Qwen2 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "qwen2",
		Architectures: []string{"Qwen2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen2(config) },
		GGUF:          []GGUF{ggufQwen2},
		Docs:          Docs{Variants: "tied embeddings, sliding windows by `max_window_layers` or `layer_types`"},
	})
}

// ParseQwen2 parses the config.json of a qwen2 model. The biases are there whatever the file says.
func ParseQwen2(config []byte) (*Qwen2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "Qwen2ForCausalLM", ctx: 32768, eps: 1e-6}
	m := &Qwen2{parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = true, false
	m.slide(parseWindow(o, m.Layers, o.integer("max_window_layers", 28, 0, maxLayers)))
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Qwen2) Facts() Facts { return m.facts("qwen2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Qwen2) Table() Table { return m.preNorm("qwen2", false) }
