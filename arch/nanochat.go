package arch

// NanoChat is the configuration of model type "nanochat": a pre-norm decoder whose norms have no weights, with one
// after the embedding and ones of query and key heads after rope, which turns backwards; a plain MLP that squares the
// positive part; and capped logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type NanoChat struct {
	Dense
	LogitCap float64 // final_logit_softcapping; 0 = none
}

func init() {
	register(Arch{
		ModelType:     "nanochat",
		Architectures: []string{"NanoChatForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseNanoChat(config) },
		Docs:          Docs{Variants: "norms without weights, rope that turns backwards, capped logits, biases"},
	})
}

// ParseNanoChat parses the config.json of a nanochat model.
func ParseNanoChat(config []byte) (*NanoChat, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "NanoChatForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{0}, eos: []int32{1}}
	// The others depend on the length of the text.
	types := []RopeType{RopeDefault, RopeLinear, RopeLlama3, RopeYarn}
	m := &NanoChat{
		Dense:    parseDense(top, o, d, ropeOptions{types: types}, "relu2"),
		LogitCap: o.limit("final_logit_softcapping", 15),
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *NanoChat) Facts() Facts { return m.facts("nanochat", m.Rope, m.Table()) }

// Table implements [Model].
func (m *NanoChat) Table() Table {
	none := func(*Table, string) {}
	return m.decoderWith("nanochat", none, func(t *Table, layer string, _ int) {
		m.projections(t, layer+"self_attn", m.queries())
		m.plainMLP(t, layer+"mlp.fc1", layer+"mlp.fc2")
	})
}
