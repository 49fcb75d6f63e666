package arch

// SolarOpen is the configuration of model type "solar_open": a pre-norm decoder with experts of a sigmoid router and
// shared experts in every layer. Absent keys have the defaults of transformers 5.23; sizes are required.
type SolarOpen struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "solar_open",
		Plain:         true,
		Architectures: []string{"SolarOpenForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseSolarOpen(config) },
		GGUF:          []GGUF{ggufGlm4Moe},
		Docs: Docs{
			Variants: "groups of experts, shared experts, biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseSolarOpen parses the config.json of a solar_open model. Every layer has experts, whatever the file says.
func ParseSolarOpen(config []byte) (*SolarOpen, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &SolarOpen{Dense: parseDecoder(top, o, commonDefaults{
		class: "SolarOpenForCausalLM", kv: 8, dim: 128, ctx: 1 << 17, eps: 1e-5,
	}, ropeOptions{theta: 1e6})}
	m.OutputBias = false
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{count: 128, perToken: 8, width: 1280, sumToOne: true, shared: 1})
	return parsed(m, o)
}

// Facts implements [Model].
func (m *SolarOpen) Facts() Facts { return m.facts("solar_open", m.Rope, m.Table()) }

// Table implements [Model].
func (m *SolarOpen) Table() Table { return m.decodes("solar_open", m.Mixture, nil) }

// Decoder implements [Described].
func (m *SolarOpen) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
