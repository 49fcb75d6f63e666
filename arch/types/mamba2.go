package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Mamba2 is the configuration of model type "mamba2": all layers are selective scans with a state of fixed size. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Mamba2 struct {
	config.Common
	SSM config.SSM
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "mamba2",
		Architectures: []string{"Mamba2ForCausalLM"},
		GGUF:          []gguf.Map{ggufMamba2},
		Idle: []arch.Idle{
			{Why: "the range of initial time steps",
				Keys: []string{"mamba_dt_max", "mamba_dt_min", "time_step_max", "time_step_min"}},
		},
		Docs: arch.Docs{Variants: "groups, step limits, biases, tied embeddings"},
	}, ParseMamba2)
}

// ParseMamba2 parses the config.json of a mamba2 model.
func ParseMamba2(data []byte) (*Mamba2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("num_attention_heads", "num_heads", "rms_norm_eps", "layer_norm_epsilon", "conv_bias", "use_conv_bias")
	m := &Mamba2{Common: config.ParseCommon(top, o, config.Defaults{
		Class: "Mamba2ForCausalLM", Context: config.EndlessContext, HeadDim: 64, NormEps: 1e-5, BOS: []int32{0},
		EOS: []int32{2},
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	o.Activation("hidden_act", config.SiLU...)
	m.SSM = config.ParseSSM(o, config.SSMKeys{
		Heads: "num_heads", Dim: "head_dim", Groups: "n_groups", State: "state_size", Kernel: "conv_kernel",
		ConvBias: "use_conv_bias", Bias: "use_bias", OutputBias: "use_bias",
	}, config.SSMDefaults{Heads: 128, Dim: 64, Groups: 8, State: 128}, o.Integer("expand", 2, 1, 64)*m.Hidden)
	return config.Done(m, o)
}

func (m *Mamba2) State() []config.LayerState {
	list := make([]config.LayerState, m.Layers)
	for i := range list {
		list[i] = m.SSM.LayerState()
	}
	return list
}

func (m *Mamba2) Facts() config.Facts { return m.FactsAs("mamba2", config.NoRope, m.Table()) }

func (m *Mamba2) Rules() precision.Rules { return precision.Generic(m.Layers) }

func (m *Mamba2) Table() table.Table {
	t := m.TableOf("mamba2", false, func(t *table.Table, layer string, _ int) {
		t.Norm(layer+"norm", int64(m.Hidden), false)
		m.SSM.AddTo(t, layer+"mixer", int64(m.Hidden))
	})
	// The first files have these names.
	t.Parts[0].Accept = append(t.Parts[0].Accept, "model.backbone.")
	t.Also([]string{"backbone.embeddings.", "backbone.embedding."}, []string{"lm_head.", "model.lm_head."})
	return t
}

// ggufMamba2 is the mapping of mamba2.
var ggufMamba2 = gguf.Map{
	Architecture: "mamba2",
	Config:       map[string]any{"model_type": "mamba2", "architectures": []string{"Mamba2ForCausalLM"}},
	Keys:         slices.Concat(ggufRecurrent, gguf.SSMKeys("conv_kernel", "state_size", "n_groups", "num_heads")),
	Tensors:      slices.Concat(gguf.Backbone(), gguf.Under("backbone.layers.*.", gguf.SSM("mixer"))),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["use_conv_bias"] = f.Shape("blk.0.ssm_conv1d.bias")
		_, c["use_bias"] = f.Shape("blk.0.ssm_in.bias")
		return gguf.SetInner(c, "mamba2", f, "num_heads", "head_dim", "expand")
	},
	Also:   alsoRecurrent,
	Refuse: gguf.RefuseSSM,
}

// ggufRecurrent are the keys of models without attention and feed-forward blocks.
var ggufRecurrent = []gguf.Key{
	{Key: "block_count", To: "num_hidden_layers", Field: "Layers"},
	{Key: "embedding_length", To: "hidden_size", Field: "Hidden"},
	{Key: "attention.layer_norm_rms_epsilon", To: "layer_norm_epsilon", Field: "NormEps"},
}

// alsoRecurrent are the keys that llama.cpp requires of models without attention.
func alsoRecurrent(m gguf.Model) []gguf.Pair {
	pairs := []gguf.Pair{{Key: "context_length", Value: config.EndlessContext}, {Key: "attention.head_count", Value: 0},
		{Key: "feed_forward_length", Value: 0}}
	switch q := m.(type) {
	case *Mamba:
		return append(pairs, gguf.Pair{Key: "ssm.inner_size", Value: q.SSM.Width},
			gguf.Pair{Key: "ssm.dt_b_c_rms", Value: false})
	case *Mamba2:
		return append(pairs, gguf.Pair{Key: "ssm.inner_size", Value: q.SSM.Width()})
	}
	return pairs
}
