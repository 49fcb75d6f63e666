package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Mamba is the configuration of model type "mamba": all layers are selective scans of channels, with a state of fixed
// size. Absent keys have the defaults of transformers 5.23; sizes are required.
type Mamba struct {
	config.Common
	SSM config.ChannelSSM
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "mamba",
		Architectures: []string{"MambaForCausalLM"},
		GGUF:          []gguf.Map{ggufMamba},
		Idle: []arch.Idle{
			{Why: "the range of initial time steps",
				Keys: []string{"mamba_dt_max", "mamba_dt_min", "time_step_max", "time_step_min"}},
		},
		Docs: arch.Docs{Variants: "biases, tied embeddings", Rules: channelRulesDoc},
	}, ParseMamba)
}

// ParseMamba parses the config.json of a mamba model.
func ParseMamba(data []byte) (*Mamba, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("rms_norm_eps", "layer_norm_epsilon")
	o.Set("num_attention_heads", 1) // it has none
	o.Set("num_key_value_heads", 1)
	o.Set("head_dim", 2)
	end := []int32{0}
	m := &Mamba{Common: config.ParseCommon(top, o, config.Defaults{
		Class: "MambaForCausalLM", Context: config.EndlessContext, NormEps: 1e-5, Tied: true, BOS: end, EOS: end,
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	o.Activation("hidden_act", config.SiLU...)
	m.SSM = config.ParseChannelSSM(o, config.SSMKeys{
		State: "state_size", Kernel: "conv_kernel", ConvBias: "use_conv_bias", Bias: "use_bias",
	}, "time_step_rank", "expand", m.Hidden)
	m.SSM.Width = o.Integer("intermediate_size", m.SSM.Width, 1, config.MaxWidth)
	return config.Done(m, o)
}

func (m *Mamba) State() []config.LayerState {
	return m.HybridStates(make([]bool, m.Layers), m.SSM.LayerState())
}

func (m *Mamba) Facts() config.Facts { return m.FactsAs("mamba", config.NoRope, m.Table()) }

// channelRulesDoc says what ChannelRules does.
const channelRulesDoc = "generic; the projections to step sizes, B and C keep their type"

func (m *Mamba) Rules() precision.Rules { return config.ChannelRules(m.Layers) }

func (m *Mamba) Table() table.Table {
	t := m.TableOf("mamba", false, func(t *table.Table, layer string, _ int) {
		t.Norm(layer+"norm", int64(m.Hidden), false)
		m.SSM.AddTo(t, layer+"mixer", int64(m.Hidden))
	})
	t.Also([]string{"backbone.embeddings.", "backbone.embedding."}) // of the first files
	return t
}

// ggufMamba is the mapping of mamba. Files of falcon_mamba say that steps, B and C are normalized.
var ggufMamba = gguf.Map{
	Architecture: "mamba",
	Config:       map[string]any{"model_type": "mamba", "architectures": []string{"MambaForCausalLM"}},
	Keys:         slices.Concat(ggufRecurrent, gguf.ChannelKeys("conv_kernel", "state_size", "time_step_rank")),
	Tensors:      slices.Concat(gguf.Backbone(), gguf.Under("backbone.layers.*.", gguf.ChannelSSM("mixer"))),
	Adjust: func(c map[string]any, f gguf.File) error {
		if v, _ := f.Value("mamba.ssm.dt_b_c_rms"); v == true {
			return fmt.Errorf("mamba.ssm.dt_b_c_rms = true: %w: falcon_mamba", arch.ErrUnknownArchitecture)
		}
		_, c["use_conv_bias"] = f.Shape("blk.0.ssm_conv1d.bias")
		_, c["use_bias"] = f.Shape("blk.0.ssm_in.bias")
		return gguf.SetExpand(c, "mamba", f, "expand")
	},
	Also: alsoRecurrent,
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Mamba); ok {
			return refuses(q.SSM, q.Hidden)
		}
		return ""
	},
}

// refuses says why llama.cpp cannot compute such a layer; "" = it can.
func refuses(d config.ChannelSSM, hidden int) string {
	switch {
	case d.Width != 2*hidden:
		return "has Mamba layers of twice the width of the model"
	case !d.ConvBias:
		return "has biases of the convolutions of Mamba layers"
	case d.Bias:
		return "has no biases of the projections of Mamba layers"
	}
	return ""
}
