package arch

import "fmt"

// FalconH1 is the configuration of model type "falcon_h1": attention and a selective scan side by side in every layer,
// whose outputs are added, and a gated feed-forward block. Multipliers are everywhere. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type FalconH1 struct {
	Dense
	SSM            SSM
	EmbeddingScale float64 // of the embedding vectors
	LogitScale     float64
	// Multipliers of inputs, of keys and of outputs.
	AttentionIn, Keys, AttentionOut float64
	SSMIn, SSMOut                   float64
	Gate, Down                      float64 // of the feed-forward block
}

func init() {
	register(Arch{
		ModelType:     "falcon_h1",
		Architectures: []string{"FalconH1ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseFalconH1(config) },
		GGUF:          []GGUF{ggufFalconH1},
		Docs: Docs{
			Variants: "attention and Mamba 2 in every layer; multipliers; the scan's norm before or after its gate or none",
		},
	})
}

// ParseFalconH1 parses the config.json of a falcon_h1 model.
func ParseFalconH1(config []byte) (*FalconH1, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "FalconH1ForCausalLM", kv: 8, ctx: 8192, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	scale := func(key string) float64 { return o.above(key, 1, 0) }
	m := &FalconH1{
		Dense:          parseDense(top, o, d, ropeOptions{}, silu...),
		EmbeddingScale: scale("embedding_multiplier"), LogitScale: scale("lm_head_multiplier"),
		AttentionIn: scale("attention_in_multiplier"), Keys: scale("key_multiplier"),
		AttentionOut: scale("attention_out_multiplier"),
		SSMIn:        scale("ssm_in_multiplier"), SSMOut: scale("ssm_out_multiplier"),
	}
	m.NormName = "final_layernorm"
	m.MLPBias = o.boolean("mlp_bias", false)
	width := o.integer("mamba_d_ssm", 1024, 1, maxWidth)
	if o.isNull("mamba_d_ssm") {
		width = o.integer("mamba_expand", 2, 1, 64) * m.Hidden
	}
	keys := hybridSSM
	keys.outputBias = "projectors_bias"
	m.SSM = parseSSM(o, keys, ssmDefaults{heads: 128, groups: 1, state: 256}, width)
	switch {
	case !o.boolean("mamba_rms_norm", false):
		m.SSM.Norm = NoNorm
	case o.boolean("mamba_norm_before_gate", true):
		m.SSM.Norm = NormBeforeGate
	}
	m.SSM.Multipliers = o.multipliers("ssm_multipliers", 5)
	mlp := o.multipliers("mlp_multipliers", 2)
	m.Gate, m.Down = mlp[0], mlp[1]
	return parsed(m, o)
}

// multipliers returns n factors, which are 1 if the key is absent.
func (o object) multipliers(key string, n int) []float64 {
	list := o.numbers(key, n)
	if list != nil && len(list) != n {
		o.fail(key, fmt.Sprintf("have %d numbers", n))
	}
	for len(list) < n {
		list = append(list, 1)
	}
	return list
}

// State implements [Model]. Each layer has two states: of its scan, and of its attention.
func (m *FalconH1) State() []LayerState {
	var list []LayerState
	for _, attention := range m.kvStates(0, nil) {
		list = append(list, m.SSM.state(), attention)
	}
	return list
}

// Facts implements [Model].
func (m *FalconH1) Facts() Facts { return m.facts("falcon_h1", m.Rope, m.Table()) }

// Table implements [Model].
func (m *FalconH1) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("falcon_h1", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		t.ssm(layer+"mamba", m.SSM, hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"pre_ff_layernorm", hidden, false)
		m.mlp(t, layer+"feed_forward", m.Intermediate)
	})
}
