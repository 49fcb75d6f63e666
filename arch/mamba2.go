package arch

// Mamba2 is the configuration of model type "mamba2": all layers are selective scans with a state of fixed size. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Mamba2 struct {
	Common
	SSM SSM
}

func init() {
	register(Arch{
		ModelType:     "mamba2",
		Architectures: []string{"Mamba2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMamba2(config) },
		GGUF:          []GGUF{ggufMamba2},
		Docs:          Docs{Variants: "groups, step limits, biases, tied embeddings"},
	})
}

// endlessContext is the context of models that have no longest one: that of llama.cpp's files.
const endlessContext = 1 << 20

// ParseMamba2 parses the config.json of a mamba2 model.
func ParseMamba2(config []byte) (*Mamba2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("num_attention_heads", "num_heads", "rms_norm_eps", "layer_norm_epsilon", "conv_bias", "use_conv_bias")
	m := &Mamba2{Common: parseCommon(top, o, commonDefaults{
		class: "Mamba2ForCausalLM", ctx: endlessContext, dim: 64, eps: 1e-5, bos: []int32{0}, eos: []int32{2},
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	o.activation("hidden_act", silu...)
	m.SSM = parseSSM(o, ssmKeys{
		heads: "num_heads", dim: "head_dim", groups: "n_groups", state: "state_size", kernel: "conv_kernel",
		convBias: "use_conv_bias", bias: "use_bias", outputBias: "use_bias",
	}, ssmDefaults{heads: 128, dim: 64, groups: 8, state: 128}, o.integer("expand", 2, 1, 64)*m.Hidden)
	return parsed(m, o)
}

// State implements [Model].
func (m *Mamba2) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i := range list {
		list[i] = m.SSM.state()
	}
	return list
}

// Facts implements [Model].
func (m *Mamba2) Facts() Facts { return m.facts("mamba2", noRope, m.Table()) }

// noRope is the rope of models without one.
var noRope = Rope{Type: RopeDefault, Theta: defaultTheta, PartialFactor: 1}

// Rules implements [Model].
func (m *Mamba2) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model].
func (m *Mamba2) Table() Table {
	t := m.decoder("mamba2", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"norm", int64(m.Hidden), false)
		t.ssm(layer+"mixer", m.SSM, int64(m.Hidden))
	})
	// The first files have these names.
	t.Parts[0].Accept = append(t.Parts[0].Accept, "model.backbone.")
	t.also([]string{"backbone.embeddings.", "backbone.embedding."}, []string{"lm_head.", "model.lm_head."})
	return t
}
