package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Bamba is the configuration of model type "bamba": layers of attention or a selective scan, each with a gated
// feed-forward block. Absent keys have the defaults of transformers 5.23; sizes are required.
type Bamba struct {
	config.Dense
	Full []bool // by layer: attention, else a scan
	SSM  config.SSM
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "bamba",
		Architectures: []string{"BambaForCausalLM"},
		GGUF:          []gguf.Map{ggufBamba},
		Idle: []arch.Idle{
			{Why: "the largest initial time step", Keys: []string{"mamba_dt_max", "time_step_max"}},
		},
		Docs: arch.Docs{Variants: "Mamba 2 layers with some of attention, whose rope is partial; groups, biases"},
	}, ParseBamba)
}

// ParseBamba parses the config.json of a bamba model.
func ParseBamba(data []byte) (*Bamba, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "BambaForCausalLM", KVHeads: 8, Context: 262144, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	m := &Bamba{Dense: config.ParseDense(top, o, d, config.RopeOptions{Partial: 0.5}, config.SiLU...)}
	m.NormName = "final_layernorm"
	m.MLPBias = o.Bool("mlp_bias", false)
	m.Full = make([]bool, m.Layers)
	for _, i := range o.Integers("attn_layer_indices", config.MaxLayers, 0, m.Layers-1) {
		m.Full[i] = true
	}
	m.SSM = config.ParseSSM(o, config.HybridSSM, config.SSMDefaults{Heads: 128, Groups: 1, State: 256},
		o.Integer("mamba_expand", 2, 1, 64)*m.Hidden)
	return config.Done(m, o)
}

func (m *Bamba) State() []config.LayerState { return m.HybridStates(m.Full, m.SSM.LayerState()) }

func (m *Bamba) Facts() config.Facts { return m.FactsAs("bamba", m.Rope, m.Table()) }

func (m *Bamba) Table() table.Table {
	return m.Decoder().OwnTable("bamba", config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		if m.Full[i] {
			return false
		}
		m.SSM.AddTo(t, layer+"mamba", int64(m.Hidden))
		return true
	}})
}

// Decoder implements [arch.Described].
func (m *Bamba) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norms:   decoder.Norms{Mixer: "input_layernorm", Network: "pre_ff_layernorm"},
		Network: "feed_forward",
	}}
}

var ggufBamba = gguf.Map{
	Architecture: "granitehybrid",
	When:         func(f gguf.File) bool { return ggufRotates(f) && !ggufScales(f) },
	Limits:       gguf.Limits{Biases: gguf.AllBiases, Square: true},
	Config:       map[string]any{"model_type": "bamba", "architectures": []string{"BambaForCausalLM"}},
	Keys:         gguf.Keys(gguf.HybridSSM...),
	Tensors: slices.Concat([]gguf.Tensor{{Name: "output_norm.weight", To: "model.final_layernorm.weight"}},
		gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.SSM("mamba"), gguf.FeedForward, gguf.Names(gguf.Op{},
			"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		full, err := gguf.SetFull(c, f)
		if err != nil {
			return err
		}
		attention := []int{}
		for i := range full {
			if full[i] {
				attention = append(attention, i)
			}
		}
		c["attn_layer_indices"] = attention
		if err := gguf.SetHybridBiases(c, "granitehybrid", f); err != nil {
			return err
		}
		_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
		c["head_dim"] = nil // hidden_size/num_attention_heads
		return gguf.SetPartial(c, "granitehybrid", f)
	},
	Also: func(m gguf.Model) []gguf.Pair {
		q, ok := m.(*Bamba)
		if !ok {
			return nil
		}
		return []gguf.Pair{gguf.KVHeads(q.KVHeads, q.Full), {Key: "ssm.inner_size", Value: q.SSM.Width()},
			{Key: "rope.scaling.finetuned", Value: true}}
	},
	Refuse: func(m gguf.Model) string {
		q, ok := m.(*Bamba)
		switch {
		case ok && q.Rope.PartialFactor != 1:
			return "rotates all channels of a head"
		case ok:
			return graniteWidth(m, q.SSM, q.Hidden)
		}
		return ""
	},
}
