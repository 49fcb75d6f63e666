package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen3 is the configuration of model type "qwen3": a pre-norm decoder with grouped-query attention, RMS norms of each
// query and key head before rope, and a gated MLP. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Qwen3 struct {
	config.Common
	Intermediate int
	Activation   string // always "silu"
	Rope         config.Rope
	// Window is the number of positions that a sliding layer attends to, including its own; 0 = no layer is sliding.
	Window  int
	Sliding []bool // by layer
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen3",
		Plain:         true,
		Aliases:       []string{"qwen3_vl", "qwen3_vl_text"},
		Towers:        []string{"qwen3_vl"},
		Architectures: []string{"Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufQwen3},
		Chat:          &arch.Chat{Marks: []string{"qwen3"}, Parser: "qwen3", Renderer: "qwen3-coder", Thinks: true},
		Equalizable:   true,
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Defaults: map[string]map[string]string{
			"qwen3_vl": qwen3VLDefaults, "qwen3_vl_text": qwen3VLDefaults,
		},
		Docs: arch.Docs{
			Variants: "biases, tied embeddings, sliding windows by `max_window_layers` or `layer_types`; text of Qwen3-VL",
		},
	}, ParseQwen3)
}

// ParseQwen3 parses the config.json of a qwen3 model.
func ParseQwen3(data []byte) (*Qwen3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Qwen3{
		Common: config.ParseCommon(top, o,
			config.Defaults{Class: "Qwen3ForCausalLM", HeadDim: 128, Context: 32768, NormEps: 1e-6}),
		Intermediate: o.Size("intermediate_size", 0, config.MaxWidth),
		Activation:   o.Activation("hidden_act", config.SiLU...),
	}
	m.Rope = config.ParseRope(o, m.Context, config.RopeOptions{HeadDim: m.HeadDim})
	m.Rope.IgnorePartial(o)
	m.Window, m.Sliding = config.ParseWindow(o, m.Layers, o.Integer("max_window_layers", 28, 0, config.MaxLayers))
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Qwen3) State() []config.LayerState {
	return m.KVStates(m.Window, func(i int) bool { return m.Sliding[i] })
}

func (m *Qwen3) Facts() config.Facts { return m.FactsAs("qwen3", m.Rope, m.Table()) }

func (m *Qwen3) Rules() precision.Rules { return precision.Generic(m.Layers) }

// Table implements [arch.Model]. Weights of linear layers are [out, in].
func (m *Qwen3) Table() table.Table {
	t := m.Decoder().Table("qwen3")
	config.DropTowers(&t, "qwen3")
	return t
}

func (m *Qwen3) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       m.dense(),
		Description: decoder.Description{HeadNorms: decoder.QK},
	}
}

func (m *Qwen3) dense() *config.Dense {
	d := &config.Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope}
	d.Slide(m.Window, m.Sliding)
	return d
}

var qwen3Norms = gguf.Names(gguf.Op{},
	"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight",
	"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")

// ggufQwen3 is the mapping of qwen3.
var ggufQwen3 = gguf.Map{
	Architecture: "qwen3",
	Config: map[string]any{
		"model_type": "qwen3", "architectures": []string{"Qwen3ForCausalLM"}, "use_sliding_window": false,
	},
	Keys:    gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), qwen3Norms, gguf.QK, gguf.Values, gguf.MLP),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
		return nil
	},
}

// qwen3VLDefaults are the values of absent keys where transformers' class differs. A rope_theta beside the parameters
// of the rope is what they lack.
var qwen3VLDefaults = map[string]string{"max_position_embeddings": "128000", "rope_theta": "5e5"}
