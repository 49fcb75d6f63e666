package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// FalconH1 is the configuration of model type "falcon_h1": attention and a selective scan side by side in every layer,
// whose outputs are added, and a gated feed-forward block. Multipliers are everywhere. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type FalconH1 struct {
	config.Dense
	SSM            config.SSM
	EmbeddingScale float64 // of the embedding vectors
	LogitScale     float64
	// Multipliers of inputs, of keys and of outputs.
	AttentionIn, Keys, AttentionOut float64
	SSMIn, SSMOut                   float64
	Gate, Down                      float64 // of the feed-forward block
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "falcon_h1",
		Architectures: []string{"FalconH1ForCausalLM"},
		GGUF:          []gguf.Map{ggufFalconH1},
		Idle: []arch.Idle{
			{Why: "the range of initial time steps",
				Keys: []string{"mamba_dt_max", "mamba_dt_min", "time_step_max", "time_step_min"}},
		},
		Docs: arch.Docs{
			Variants: "attention and Mamba 2 in every layer; multipliers; the scan's norm before or after its gate or none",
		},
	}, ParseFalconH1)
}

// ParseFalconH1 parses the config.json of a falcon_h1 model.
func ParseFalconH1(data []byte) (*FalconH1, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "FalconH1ForCausalLM", KVHeads: 8, Context: 8192, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	scale := func(key string) float64 { return o.Above(key, 1, 0) }
	m := &FalconH1{
		Dense:          config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...),
		EmbeddingScale: scale("embedding_multiplier"), LogitScale: scale("lm_head_multiplier"),
		AttentionIn: scale("attention_in_multiplier"), Keys: scale("key_multiplier"),
		AttentionOut: scale("attention_out_multiplier"),
		SSMIn:        scale("ssm_in_multiplier"), SSMOut: scale("ssm_out_multiplier"),
	}
	m.NormName = "final_layernorm"
	m.MLPBias = o.Bool("mlp_bias", false)
	width := o.Integer("mamba_d_ssm", 1024, 1, config.MaxWidth)
	if o.IsNull("mamba_d_ssm") {
		width = o.Integer("mamba_expand", 2, 1, 64) * m.Hidden
	}
	keys := config.HybridSSM
	keys.OutputBias = "projectors_bias"
	m.SSM = config.ParseSSM(o, keys, config.SSMDefaults{Heads: 128, Groups: 1, State: 256}, width)
	switch {
	case !o.Bool("mamba_rms_norm", false):
		m.SSM.Norm = config.NoNorm
	case o.Bool("mamba_norm_before_gate", true):
		m.SSM.Norm = config.NormBeforeGate
	}
	m.SSM.Multipliers = readMultipliers(o, "ssm_multipliers", 5)
	mlp := readMultipliers(o, "mlp_multipliers", 2)
	m.Gate, m.Down = mlp[0], mlp[1]
	return config.Done(m, o)
}

// readMultipliers returns n factors, which are 1 if the key is absent.
func readMultipliers(o config.Object, key string, n int) []float64 {
	list := o.Numbers(key, n)
	if list != nil && len(list) != n {
		o.Fail(key, fmt.Sprintf("have %d numbers", n))
	}
	for len(list) < n {
		list = append(list, 1)
	}
	return list
}

// State implements [arch.Model]. Each layer has two states: of its scan, and of its attention.
func (m *FalconH1) State() []config.LayerState {
	var list []config.LayerState
	for _, attention := range m.KVStates(0, nil) {
		list = append(list, m.SSM.LayerState(), attention)
	}
	return list
}

func (m *FalconH1) Facts() config.Facts { return m.FactsAs("falcon_h1", m.Rope, m.Table()) }

func (m *FalconH1) Table() table.Table {
	return m.Decoder().OwnTable("falcon_h1", config.Own{Mixer: func(t *table.Table, layer string, _ int) bool {
		m.SSM.AddTo(t, layer+"mamba", int64(m.Hidden))
		m.AddProjections(t, layer+"self_attn", m.QueryWidth())
		return true
	}})
}

// Decoder implements [arch.Described].
func (m *FalconH1) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norms:          decoder.Norms{Mixer: "input_layernorm", Network: "pre_ff_layernorm"},
		Network:        "feed_forward",
		EmbeddingScale: m.EmbeddingScale,
		LogitScale:     m.LogitScale,
	}}
}

// ggufFalconH1 is the mapping of falcon_h1. The converter multiplies the weights by the multipliers.
var ggufFalconH1 = gguf.Map{
	Architecture: "falcon-h1",
	Limits:       gguf.Limits{Biases: gguf.QKVBiases},
	Config: map[string]any{
		"model_type": "falcon_h1", "architectures": []string{"FalconH1ForCausalLM"}, "mamba_norm_before_gate": false,
	},
	Keys: gguf.Keys(gguf.HybridSSM...),
	Tensors: slices.Concat([]gguf.Tensor{
		{Name: "output_norm.weight", To: "model.final_layernorm.weight"},
		{Name: "blk.*.ffn_norm", To: "model.layers.*.pre_ff_layernorm.weight"},
	}, gguf.Ends(gguf.Op{}), gguf.Attention, gguf.SSM("mamba"), gguf.FeedForward, gguf.Names(gguf.Op{},
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetHybridBiases(c, "falcon-h1", f); err != nil {
			return err
		}
		c["mamba_d_ssm"], _ = f.Value("falcon-h1.ssm.inner_size")
		c["projectors_bias"] = gguf.AnyLayer(c, f, "ssm_out.bias")
		c["mamba_rms_norm"] = gguf.AnyLayer(c, f, "ssm_norm.weight")
		_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
		return nil
	},
	Also: func(m gguf.Model) []gguf.Pair {
		q, ok := m.(*FalconH1)
		if !ok {
			return nil
		}
		return []gguf.Pair{{Key: "ssm.inner_size", Value: q.SSM.Width()}}
	},
	Refuse: gguf.RefuseSSM,
}
