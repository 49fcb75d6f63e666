package arch

import "github.com/ingotml/ingot/arch/decoder"

// Helium is the configuration of model type "helium": a pre-norm decoder whose rope rotates neighbouring channels.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Helium struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "helium",
		Plain:         true,
		Architectures: []string{"HeliumForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseHelium(config) },
		Docs:          Docs{Variants: "rope of neighbouring channels, biases, tied embeddings"},
	})
}

// ParseHelium parses the config.json of a helium model. The output projection has no bias.
func ParseHelium(config []byte) (*Helium, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "HeliumForCausalLM", dim: 128, ctx: 4096, eps: 1e-8, bos: []int32{1}, eos: []int32{2}}
	m := &Helium{parseDense(top, o, d, ropeOptions{theta: 1e5}, silu...)}
	m.OutputBias, m.MLPBias = false, o.boolean("mlp_bias", false)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Helium) Facts() Facts { return m.facts("helium", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Helium) Table() Table { return m.preNorm("helium", false) }

// Decoder implements [Described].
func (m *Helium) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
