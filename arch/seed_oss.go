package arch

// SeedOss is the configuration of model type "seed_oss" (Seed-OSS): a pre-norm decoder with biases of queries, keys and
// values. Absent keys have the defaults of transformers 5.23; sizes are required.
type SeedOss struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "seed_oss",
		Plain:         true,
		Architectures: []string{"SeedOssForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseSeedOss(config) },
		GGUF:          []GGUF{ggufSeedOss},
		Docs:          Docs{Variants: "biases of attention's input and output and of the MLP, tied embeddings"},
	})
}

// ParseSeedOss parses the config.json of a seed_oss model.
func ParseSeedOss(config []byte) (*SeedOss, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "SeedOssForCausalLM", kv: 8, dim: 128, ctx: 1 << 19, eps: 1e-6, bos: []int32{0}, eos: []int32{2},
	}
	m := &SeedOss{parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = o.boolean("attention_bias", true), o.boolean("attention_out_bias", false)
	m.MLPBias = o.boolean("mlp_bias", false)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *SeedOss) Facts() Facts { return m.facts("seed_oss", m.Rope, m.Table()) }

// Table implements [Model].
func (m *SeedOss) Table() Table { return m.preNorm("seed_oss", false) }

// Decoder implements [Described].
func (m *SeedOss) Decoder() Decoder {
	return Decoder{Dense: &m.Dense}
}
