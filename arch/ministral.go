package arch

// Ministral is the configuration of model type "ministral": Mistral with a window in some layers. Absent keys have the
// defaults of transformers 5.23; sizes are required.
type Ministral struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "ministral",
		Plain:         true,
		Architectures: []string{"MinistralForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMinistral(config) },
		Docs:          Docs{Variants: "sliding layers by `layer_types`, or all"},
	})
}

// ParseMinistral parses the config.json of a ministral model. It has no biases, whatever the file says.
func ParseMinistral(config []byte) (*Ministral, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "MinistralForCausalLM", kv: 8, ctx: 1 << 17, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	m := &Ministral{parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = false, false
	m.everywhere(o.window("sliding_window", 4096))
	if kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention); kinds != nil {
		m.slide(m.Window, slidingOf(kinds))
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Ministral) Facts() Facts { return m.facts("ministral", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Ministral) Table() Table { return m.preNorm("ministral", false) }

// Decoder implements [Described].
func (m *Ministral) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
