package arch

import "github.com/ingotml/ingot/arch/decoder"

// Olmo is the configuration of model type "olmo" (OLMo 1): a pre-norm decoder whose LayerNorms have no weights. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Olmo struct {
	Dense
	Clip float64 // clip_qkv: queries, keys and values are limited to [-Clip, Clip]; 0 = they are not
}

func init() {
	register(Arch{
		ModelType:     "olmo",
		Plain:         true,
		Architectures: []string{"OlmoForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOlmo(config) },
		GGUF:          []GGUF{ggufOlmo},
		Docs:          Docs{Variants: "norms without weights, limited queries, keys and values, biases, tied embeddings"},
	})
}

// ParseOlmo parses the config.json of an olmo model.
func ParseOlmo(config []byte) (*Olmo, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "OlmoForCausalLM", ctx: 2048, eps: 1e-5, eos: []int32{50279}}
	m := &Olmo{Dense: parseDense(top, o, d, ropeOptions{}, silu...), Clip: o.limit("clip_qkv", 0)}
	m.NormEps = 1e-5 // whatever the file says
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Olmo) Facts() Facts { return m.facts("olmo", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Olmo) Table() Table {
	none := func(*Table, string) {}
	return m.decoderWith("olmo", none, func(t *Table, layer string, _ int) {
		m.projections(t, layer+"self_attn", m.queries())
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// Decoder implements [Described].
func (m *Olmo) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm: decoder.Norm{LayerNorm: true, Unweighed: true},
		Clip: m.Clip,
	}}
}
