package arch

// Gemma2 is the configuration of model type "gemma2": norms before and after attention and MLP, with weights used as 1
// + w in float32; embeddings multiplied by sqrt(hidden); every other layer sliding; soft caps of attention scores and
// logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type Gemma2 struct {
	Dense
	QueryScalar float64 // query_pre_attn_scalar: attention scores are divided by its square root
	ScoreCap    float64 // attn_logit_softcapping; 0 = none
	LogitCap    float64 // final_logit_softcapping; 0 = none
}

func init() {
	register(Arch{
		ModelType:     "gemma2",
		Architectures: []string{"Gemma2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGemma2(config) },
		GGUF:          []GGUF{ggufGemma2},
		Docs:          Docs{Variants: "sliding layers between full ones, soft caps of scores and logits, biases"},
	})
}

// ParseGemma2 parses the config.json of a gemma2 model.
func ParseGemma2(config []byte) (*Gemma2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	if key := "hidden_activation"; o.has(key) {
		o.raw["hidden_act"] = o.raw[key]
	}
	m := &Gemma2{
		Dense: parseDense(top, o, commonDefaults{
			class: "Gemma2ForCausalLM", kv: 4, dim: 256, ctx: 8192, eps: 1e-6, tied: true, bos: []int32{2}, eos: []int32{1},
		}, ropeOptions{}, gelu...),
		QueryScalar: o.above("query_pre_attn_scalar", 256, 0),
		ScoreCap:    o.limit("attn_logit_softcapping", 50),
		LogitCap:    o.limit("final_logit_softcapping", 30),
	}
	m.slide(o.integer("sliding_window", 4096, 1, maxContext), parsePattern(o, m.Layers, 2))
	o.causal()
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Gemma2) Facts() Facts { return m.facts("gemma2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Gemma2) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("gemma2", true, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, true)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"post_attention_layernorm", hidden, true)
		t.norm(layer+"pre_feedforward_layernorm", hidden, true)
		m.mlp(t, layer+"mlp", m.Intermediate)
		t.norm(layer+"post_feedforward_layernorm", hidden, true)
	})
}
