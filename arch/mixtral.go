package arch

// Mixtral is the configuration of model type "mixtral": Llama with experts in every layer. All layers may have a
// sliding window. Absent keys have the defaults of transformers 5.23; sizes are required.
type Mixtral struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "mixtral",
		Plain:         true,
		Architectures: []string{"MixtralForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMixtral(config) },
		GGUF:          []GGUF{ggufLlama},
		// In GGUF files it is a llama with experts.
		Docs: Docs{
			Variants: "experts named `w1` to `w3`, stacked or separate; sliding window in all layers",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseMixtral parses the config.json of a mixtral model.
func ParseMixtral(config []byte) (*Mixtral, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "MixtralForCausalLM", kv: 8, ctx: 1 << 17, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	m := &Mixtral{Dense: parseDecoder(top, o, d, ropeOptions{theta: 1e6})}
	m.AttentionBias, m.OutputBias = false, false
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 8, perToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	m.everywhere(o.window("sliding_window", 0))
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Mixtral) Facts() Facts { return m.facts("mixtral", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Mixtral) Table() Table {
	t := m.decodes("mixtral", m.Mixture, nil)
	t.also(blockSparse...)
	return t
}

// Decoder implements [Described].
func (m *Mixtral) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
