package arch

import "github.com/ingotml/ingot/arch/decoder"

// Ernie45 is the configuration of model type "ernie4_5" (ERNIE 4.5): a pre-norm decoder whose rope rotates neighbouring
// channels. Absent keys have the defaults of transformers 5.23; sizes are required.
type Ernie45 struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "ernie4_5",
		Plain:         true,
		Architectures: []string{"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseErnie45(config) },
		GGUF:          []GGUF{ggufErnie45},
		Docs:          Docs{Variants: "rope of neighbouring channels, biases everywhere, untied embeddings"},
	})
}

// ParseErnie45 parses the config.json of an ernie4_5 model.
func ParseErnie45(config []byte) (*Ernie45, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Ernie45{parseDense(top, o, commonDefaults{
		class: "Ernie4_5ForCausalLM", kv: 2, dim: 128, ctx: 1 << 17, eps: 1e-5, tied: true, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{theta: 5e5}, silu...)}
	m.AttentionBias = o.boolean("use_bias", false)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Ernie45) Facts() Facts { return m.facts("ernie4_5", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Ernie45) Table() Table { return m.preNorm("ernie4_5", false) }

// Decoder implements [Described].
func (m *Ernie45) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
