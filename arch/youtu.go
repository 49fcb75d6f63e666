package arch

// Youtu is the configuration of model type "youtu" (Youtu-LLM): latent attention and a dense feed-forward block. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Youtu struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "youtu",
		Aliases:       []string{"youtu_llm"},
		Architectures: []string{"YoutuForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseYoutu(config) },
		GGUF:          []GGUF{ggufDeepseek2},
		Docs:          Docs{Variants: "low-rank or single query projection, rotated pairs in either layout, biases"},
	})
}

// ParseYoutu parses the config.json of a youtu model.
func ParseYoutu(config []byte) (*Youtu, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Youtu{parseLatent(top, o, commonDefaults{
		class: "YoutuForCausalLM", ctx: 131072, eps: 1e-6, tied: true, bos: []int32{128000}, eos: []int32{128001},
	}, latentDefaults{query: 1536, kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{})}
	m.Latent.Interleaved = o.boolean("rope_interleave", true)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Youtu) Facts() Facts { return m.facts("youtu", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Youtu) Table() Table { return m.table("youtu") }
