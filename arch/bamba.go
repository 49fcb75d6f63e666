package arch

// Bamba is the configuration of model type "bamba": layers of attention or a selective scan, each with a gated
// feed-forward block. Absent keys have the defaults of transformers 5.23; sizes are required.
type Bamba struct {
	Dense
	Full []bool // by layer: attention, else a scan
	SSM  SSM
}

func init() {
	register(Arch{
		ModelType:     "bamba",
		Architectures: []string{"BambaForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseBamba(config) },
		GGUF:          []GGUF{ggufBamba},
		Docs:          Docs{Variants: "Mamba 2 layers with some of attention, whose rope is partial; groups, biases"},
	})
}

// ParseBamba parses the config.json of a bamba model.
func ParseBamba(config []byte) (*Bamba, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "BambaForCausalLM", kv: 8, ctx: 262144, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	m := &Bamba{Dense: parseDense(top, o, d, ropeOptions{partial: 0.5}, silu...)}
	m.NormName = "final_layernorm"
	m.MLPBias = o.boolean("mlp_bias", false)
	m.Full = make([]bool, m.Layers)
	for _, i := range o.integers("attn_layer_indices", maxLayers, 0, m.Layers-1) {
		m.Full[i] = true
	}
	m.SSM = parseSSM(o, hybridSSM, ssmDefaults{heads: 128, groups: 1, state: 256},
		o.integer("mamba_expand", 2, 1, 64)*m.Hidden)
	return parsed(m, o)
}

// State implements [Model].
func (m *Bamba) State() []LayerState { return m.hybridStates(m.Full, m.SSM.state()) }

// Facts implements [Model].
func (m *Bamba) Facts() Facts { return m.facts("bamba", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Bamba) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("bamba", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		if m.Full[i] {
			m.projections(t, layer+"self_attn", m.queries())
		} else {
			t.ssm(layer+"mamba", m.SSM, hidden)
		}
		t.norm(layer+"pre_ff_layernorm", hidden, false)
		m.mlp(t, layer+"feed_forward", m.Intermediate)
	})
}
