package arch

import "fmt"

// Jamba is the configuration of model type "jamba": layers of attention without positions or a selective scan of
// channels, each with a gated feed-forward block or experts. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type Jamba struct {
	Dense
	Full    []bool // by layer: attention, else a scan
	SSM     ChannelSSM
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "jamba",
		Architectures: []string{"JambaForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseJamba(config) },
		GGUF:          []GGUF{ggufJamba},
		Docs: Docs{
			Variants: "Mamba layers with some of attention, experts in some, biases, tied embeddings", Rules: channelRulesDoc,
		},
	})
}

// ParseJamba parses the config.json of a jamba model.
func ParseJamba(config []byte) (*Jamba, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "JambaForCausalLM", kv: 8, ctx: 262144, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	m := &Jamba{Dense: Dense{
		Common:       parseCommon(top, o, d),
		Intermediate: o.size("intermediate_size", 0, maxWidth),
		Activation:   o.activation("hidden_act", silu...),
		Rope:         noRope, // not used
	}}
	m.NormName = "final_layernorm"
	m.AttentionBias, m.OutputBias = false, false
	m.Full = o.periodic("attn_layer_period", "attn_layer_offset", 8, 4, m.Layers)
	if o.integer("num_experts", 16, 1, maxExperts) > 1 {
		m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 16, perToken: 2}, "intermediate_size")
		m.Mixture.Experts.NormTopK = false
		m.Mixture.Sparse = o.periodic("expert_layer_period", "expert_layer_offset", 2, 1, m.Layers)
	} else {
		m.Mixture.Sparse = make([]bool, m.Layers)
	}
	m.SSM = parseChannelSSM(o, hybridSSM, "mamba_dt_rank", "mamba_expand", m.Hidden)
	m.SSM.Norms = true
	return parsed(m, o)
}

// periodic reads which layers are special: those whose number is an offset, modulo a period.
func (o object) periodic(period, offset string, defPeriod, defOffset, layers int) []bool {
	every := o.integer(period, defPeriod, 1, maxLayers)
	first := o.integer(offset, defOffset, 0, maxLayers)
	if first >= every {
		o.fail(offset, fmt.Sprintf("be < %s = %d", period, every))
	}
	list := make([]bool, layers)
	for i := range list {
		list[i] = i%every == first
	}
	return list
}

// State implements [Model].
func (m *Jamba) State() []LayerState { return m.hybridStates(m.Full, m.SSM.state()) }

// Facts implements [Model].
func (m *Jamba) Facts() Facts { return m.facts("jamba", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Jamba) Rules() Rules { return channelRules(m.Layers) }

// Table implements [Model].
func (m *Jamba) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("jamba", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		if m.Full[i] {
			m.projections(t, layer+"self_attn", m.queries())
		} else {
			t.channelSSM(layer+"mamba", m.SSM, hidden)
		}
		t.norm(layer+"pre_ff_layernorm", hidden, false)
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"feed_forward", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"feed_forward", m.Intermediate)
		}
	})
	t.publishes(naming{layout: fused, names: []string{".feed_forward.gate.", ".feed_forward.router."}})
	return t
}
