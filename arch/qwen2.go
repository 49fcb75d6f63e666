package arch

// Qwen2 is the configuration of model type "qwen2": a pre-norm decoder with grouped-query attention, biases of queries,
// keys and values, and a gated MLP. Absent keys have the defaults of transformers 5.23; sizes are required.
type Qwen2 struct{ Dense }

func init() {
	register(Arch{
		ModelType: "qwen2",
		Plain:     true,
		Aliases:   []string{"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_audio", "mimo"},
		Towers:    []string{"qwen2_vl", "qwen2_5_vl", "qwen2_audio"},
		Architectures: []string{
			"Qwen2ForCausalLM", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
			"Qwen2AudioForConditionalGeneration", "MiMoForCausalLM",
		},
		Parse: func(config []byte) (Model, error) { return ParseQwen2(config) },
		GGUF:  []GGUF{ggufQwen2},
		Docs: Docs{
			Variants: "tied embeddings, sliding windows by `max_window_layers` or `layer_types`; " +
				"text of Qwen2-VL, Qwen2.5-VL and Qwen2-Audio; MiMo 7B without its head that drafts",
		},
	})
}

// ParseQwen2 parses the config.json of a qwen2 model. The biases are there whatever the file says.
func ParseQwen2(config []byte) (*Qwen2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "Qwen2ForCausalLM", vocab: 151936, hidden: 4096, layers: 32, heads: 32, ctx: 32768, eps: 1e-6,
	}
	m := &Qwen2{parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = true, false
	m.slide(parseWindow(o, m.Layers, o.integer("max_window_layers", 28, 0, maxLayers)))
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Qwen2) Facts() Facts { return m.facts("qwen2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Qwen2) Table() Table {
	t := m.preNorm("qwen2", false)
	t.dropTowers("qwen2")
	t.leaveOut("mtp_layers", "predicts further tokens, which is not supported for this type", m.Prefix+"mtp_layers.*")
	return t
}

// Decoder implements [Described].
func (m *Qwen2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
