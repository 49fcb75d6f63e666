package arch

// Mamba is the configuration of model type "mamba": all layers are selective scans of channels, with a state of fixed
// size. Absent keys have the defaults of transformers 5.23; sizes are required.
type Mamba struct {
	Common
	SSM ChannelSSM
}

func init() {
	register(Arch{
		ModelType:     "mamba",
		Architectures: []string{"MambaForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMamba(config) },
		GGUF:          []GGUF{ggufMamba},
		Docs:          Docs{Variants: "biases, tied embeddings", Rules: channelRulesDoc},
	})
}

// ParseMamba parses the config.json of a mamba model.
func ParseMamba(config []byte) (*Mamba, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("rms_norm_eps", "layer_norm_epsilon")
	o.set("num_attention_heads", 1) // it has none
	o.set("num_key_value_heads", 1)
	o.set("head_dim", 2)
	end := []int32{0}
	m := &Mamba{Common: parseCommon(top, o, commonDefaults{
		class: "MambaForCausalLM", ctx: endlessContext, eps: 1e-5, tied: true, bos: end, eos: end,
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	o.activation("hidden_act", silu...)
	m.SSM = parseChannelSSM(o, ssmKeys{
		state: "state_size", kernel: "conv_kernel", convBias: "use_conv_bias", bias: "use_bias",
	}, "time_step_rank", "expand", m.Hidden)
	m.SSM.Width = o.integer("intermediate_size", m.SSM.Width, 1, maxWidth)
	return parsed(m, o)
}

// State implements [Model].
func (m *Mamba) State() []LayerState {
	return m.hybridStates(make([]bool, m.Layers), m.SSM.state())
}

// Facts implements [Model].
func (m *Mamba) Facts() Facts { return m.facts("mamba", noRope, m.Table()) }

// channelRulesDoc says what channelRules does.
const channelRulesDoc = "generic; the projections to step sizes, B and C keep their type"

// channelRules are the rules of models with selective scans of channels: the small projections that give steps, B and C
// keep their type, as they control how long the state remembers.
func channelRules(layers int) Rules {
	return genericRules(layers, Rule{
		Name: "steps, B and C of a selective scan", Of: Quantized, To: []Target{Source},
		Ends: []string{".x_proj.weight", ".dt_proj.weight", ".A_log"},
	}, Rule{Name: "decides in float32", Of: Casts, To: []Target{Source}, Ends: []string{".dt_proj.bias"}})
}

// Rules implements [Model].
func (m *Mamba) Rules() Rules { return channelRules(m.Layers) }

// Table implements [Model].
func (m *Mamba) Table() Table {
	t := m.decoder("mamba", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"norm", int64(m.Hidden), false)
		t.channelSSM(layer+"mixer", m.SSM, int64(m.Hidden))
	})
	t.also([]string{"backbone.embeddings.", "backbone.embedding."}) // of the first files
	return t
}
