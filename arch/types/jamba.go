package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Jamba is the configuration of model type "jamba": layers of attention without positions or a selective scan of
// channels, each with a gated feed-forward block or experts. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type Jamba struct {
	config.Dense
	Full    []bool // by layer: attention, else a scan
	SSM     config.ChannelSSM
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "jamba",
		Architectures: []string{"JambaForCausalLM"},
		GGUF:          []gguf.Map{ggufJamba},
		Published:     table.Published{Experts: table.PerExpert, Projections: table.Fused, Apart: true},
		Idle: []arch.Idle{
			{Why: "the range of initial time steps",
				Keys: []string{"mamba_dt_max", "mamba_dt_min", "time_step_max", "time_step_min"}},
		},
		Docs: arch.Docs{
			Variants: "Mamba layers with some of attention, experts in some, biases, tied embeddings", Rules: channelRulesDoc,
		},
	}, ParseJamba)
}

// ParseJamba parses the config.json of a jamba model.
func ParseJamba(data []byte) (*Jamba, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "JambaForCausalLM", KVHeads: 8, Context: 262144, NormEps: 1e-6, BOS: []int32{1},
		EOS: []int32{2}}
	m := &Jamba{Dense: config.Dense{
		Common:       config.ParseCommon(top, o, d),
		Intermediate: o.Size("intermediate_size", 0, config.MaxWidth),
		Activation:   o.Activation("hidden_act", config.SiLU...),
		Rope:         config.NoRope, // not used
	}}
	m.NormName = "final_layernorm"
	m.AttentionBias, m.OutputBias = false, false
	m.Full = periodicLayers(o, "attn_layer_period", "attn_layer_offset", 8, 4, m.Layers)
	if o.Integer("num_experts", 16, 1, config.MaxExperts) > 1 {
		m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 16, PerToken: 2}, "intermediate_size")
		m.Mixture.Experts.NormTopK = false
		m.Mixture.Sparse = periodicLayers(o, "expert_layer_period", "expert_layer_offset", 2, 1, m.Layers)
	} else {
		m.Mixture.Sparse = make([]bool, m.Layers)
	}
	m.SSM = config.ParseChannelSSM(o, config.HybridSSM, "mamba_dt_rank", "mamba_expand", m.Hidden)
	m.SSM.Norms = true
	return config.Done(m, o)
}

// periodicLayers reads which layers are special: those whose number is an offset, modulo a period.
func periodicLayers(o config.Object, period, offset string, defPeriod, defOffset, layers int) []bool {
	every := o.Integer(period, defPeriod, 1, config.MaxLayers)
	first := o.Integer(offset, defOffset, 0, config.MaxLayers)
	if first >= every {
		o.Fail(offset, fmt.Sprintf("be < %s = %d", period, every))
	}
	list := make([]bool, layers)
	for i := range list {
		list[i] = i%every == first
	}
	return list
}

func (m *Jamba) State() []config.LayerState { return m.HybridStates(m.Full, m.SSM.LayerState()) }

func (m *Jamba) Facts() config.Facts { return m.FactsAs("jamba", m.Rope, m.Table()) }

func (m *Jamba) Rules() precision.Rules { return config.ChannelRules(m.Layers) }

func (m *Jamba) Table() table.Table {
	t := m.Decoder().OwnTable("jamba", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		if m.Full[i] {
			return false
		}
		m.SSM.AddTo(t, layer+"mamba", int64(m.Hidden))
		return true
	}})
	t.Publishes(table.Naming{Layout: table.Fused, Names: []string{".feed_forward.gate.", ".feed_forward.router."}})
	return t
}

// Decoder implements [arch.Described].
func (m *Jamba) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norms:      decoder.Norms{Mixer: "input_layernorm", Network: "pre_ff_layernorm"},
		RopeLayers: make([]bool, m.Layers),
		Network:    "feed_forward",
	}}
}

// ggufJamba is the mapping of jamba.
var ggufJamba = gguf.Map{
	Architecture: "jamba",
	Limits:       gguf.Limits{Square: true, AnySparse: true},
	Config:       map[string]any{"model_type": "jamba", "architectures": []string{"JambaForCausalLM"}},
	Keys: append(gguf.Keys(
		gguf.Key{Key: "expert_count", To: "num_experts", Field: "Experts.Count", Optional: true},
		gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true},
	), gguf.ChannelKeys("mamba_d_conv", "mamba_d_state", "mamba_dt_rank")...),
	Tensors: slices.Concat([]gguf.Tensor{
		{Name: "output_norm.weight", To: "model.final_layernorm.weight"},
	}, gguf.Ends(gguf.Op{}), gguf.Attention, gguf.ChannelSSM("mamba"), gguf.FeedForward, gguf.Names(gguf.Op{},
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		full, err := gguf.SetFull(c, f)
		if err != nil {
			return err
		}
		if c["attn_layer_period"], c["attn_layer_offset"], err = periodOf(full, "attention"); err != nil {
			return err
		}
		sparse := make([]bool, len(full))
		for i := range sparse {
			_, sparse[i] = f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i))
		}
		if c["expert_layer_period"], c["expert_layer_offset"], err = periodOf(sparse, "experts"); err != nil {
			return err
		}
		if !slices.Contains(sparse, true) {
			c["num_experts"] = 1
		}
		return gguf.SetChannels(c, "jamba", f)
	},
	Also: func(m gguf.Model) []gguf.Pair {
		q, ok := m.(*Jamba)
		if !ok {
			return nil
		}
		return []gguf.Pair{
			gguf.KVHeads(q.KVHeads, q.Full), {Key: "ssm.inner_size", Value: q.SSM.Width},
			{Key: "expert_count", Value: q.Mixture.Experts.Count},
			{Key: "expert_used_count", Value: q.Mixture.Experts.PerToken},
		}
	},
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Jamba); ok {
			return refuses(q.SSM, q.Hidden)
		}
		return ""
	},
}

// periodOf returns the period of the layers that are set, and the first of them.
func periodOf(set []bool, what string) (period, offset int, err error) {
	offset = slices.Index(set, true)
	if offset < 0 { // none: the period is longer than the model
		return config.MaxLayers, config.MaxLayers - 1, nil
	}
	period = len(set)
	if next := slices.Index(set[offset+1:], true); next >= 0 {
		period = next + 1
	}
	period = max(period, offset+1)
	for i := range set {
		if set[i] != (i%period == offset) {
			return 0, 0, fmt.Errorf("%w: layers with %s are not at equal distances (layer %d)", gguf.ErrMetadata, what, i)
		}
	}
	return period, offset, nil
}
