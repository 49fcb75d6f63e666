package types

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Gemma3 is the configuration of the text model of model type "gemma3", alone (gemma3_text) or in a multimodal
// checkpoint. The vision tower is not imported. It has norms before and after attention and MLP, with weights used as 1
// + w in float32; query and key norms per head; sliding layers, with their own rope, alternating with full ones; and
// embeddings multiplied by sqrt(hidden). attn_logit_softcapping is ignored, as in transformers. Absent keys have the
// defaults of transformers 5.23; sizes only inside text_config.
type Gemma3 struct {
	config.Common
	Intermediate int
	Activation   string      // always "gelu_pytorch_tanh"
	QueryScalar  float64     // query_pre_attn_scalar: attention scores are divided by its square root
	Window       int         // positions that a sliding layer attends to, including its own
	Sliding      []bool      // by layer
	Rope         config.Rope // of full layers
	SlidingRope  config.Rope
	LogitCap     float64 // final_logit_softcapping; 0 = none
}

func init() {
	arch.Register(arch.Arch{
		ModelType: "gemma3",
		Plain:     true,
		Aliases:   []string{"gemma3_text"},
		// Most published checkpoints use the first.
		Architectures: []string{"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
		GGUF:          []gguf.Map{ggufGemma3},
		TextOnly:      true,
		Published:     table.Published{Nested: true},
		Wide:          true,
		Idle: []arch.Idle{
			{Why: "the reference keeps it and never uses it", Keys: []string{"attn_logit_softcapping"}},
			{Why: "its ropes rotate whole heads", Keys: []string{"partial_rotary_factor"}},
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
		},
		Docs: arch.Docs{
			Variants: "text only, text of multimodal checkpoints; sliding layers with their own rope, logit soft-capping",
		},
	}, ParseGemma3)
}

// ParseGemma3 parses the config.json of a gemma3 model.
func ParseGemma3(data []byte) (*Gemma3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Gemma3{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "Gemma3ForConditionalGeneration", Vocab: 262208, Hidden: 2304, Layers: 26, Heads: 8, KVHeads: 4, HeadDim: 256,
			Context: 131072, NormEps: 1e-6, Tied: true, BOS: []int32{2}, EOS: []int32{1},
		}),
		Intermediate: o.Size("intermediate_size", 9216, config.MaxWidth),
		Activation:   o.Activation("hidden_activation", config.GELU...),
		QueryScalar:  o.Above("query_pre_attn_scalar", 256, 0),
		Window:       o.Integer("sliding_window", 4096, 1, config.MaxContext),
		LogitCap:     o.Above("final_logit_softcapping", 0, 0),
	}
	if o.Bool("use_bidirectional_attention", false) {
		o.Fail("use_bidirectional_attention", "be false: encoders are not supported")
	}
	m.Sliding = config.ParsePattern(o, m.Layers, 6)
	opts := config.RopeOptions{HeadDim: m.HeadDim, Theta: o.Theta("rope_theta", 1e6)}
	scaling, _ := o.Object("rope_scaling")
	m.Rope = config.ParseLayerRope(o, config.FullAttention, scaling, m.Context, opts)
	opts.Theta = o.Theta("rope_local_base_freq", 1e4)
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, opts)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Gemma3) State() []config.LayerState {
	return m.KVStates(m.Window, func(i int) bool { return m.Sliding[i] })
}

func (m *Gemma3) Facts() config.Facts { return m.FactsAs("gemma3", m.Rope, m.Table()) }

func (m *Gemma3) Rules() precision.Rules { return precision.Generic(m.Layers) }

func (m *Gemma3) Table() table.Table {
	t := m.Decoder().Table("gemma3")
	config.DropTowers(&t, "gemma3")
	return t
}

func (m *Gemma3) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       m.dense(),
		SlidingRope: &m.SlidingRope,
		Description: decoder.Description{
			Norm:           decoder.Norm{Offset: true},
			Norms:          decoder.Around,
			HeadNorms:      decoder.QK,
			AttentionScale: 1 / math.Sqrt(m.QueryScalar),
			EmbeddingScale: math.Sqrt(float64(m.Hidden)),
			LogitCap:       m.LogitCap,
		},
	}
}

func (m *Gemma3) dense() *config.Dense {
	d := &config.Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope}
	d.Slide(m.Window, m.Sliding)
	return d
}

// ggufGemma3 is the mapping of gemma3. Weights of norms have 1 added; files of 27B, with 62 layers, scale queries by
// the size of a layer's channels per head.
var ggufGemma3 = gguf.Map{
	Architecture: "gemma3",
	Config:       map[string]any{"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true},
		gguf.Key{Key: "rope.freq_base_swa", To: "rope_local_base_freq", Field: "SlidingRope.Theta", Optional: true},
		gguf.Key{Key: "final_logit_softcapping", To: "final_logit_softcapping", Field: "LogitCap", Optional: true},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.PlusOne,
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")),
	Adjust: adjustGemma3,
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Gemma3); ok && q.SlidingRope.Type != "" && q.SlidingRope.Type != config.RopeDefault {
			return "does not scale the positions of sliding layers"
		}
		return ""
	},
}

func adjustGemma3(c map[string]any, f gguf.File) error {
	if err := ggufQueryScalar(c, 62); err != nil {
		return err
	}
	if _, ok := c["sliding_window"]; !ok {
		c["sliding_window_pattern"] = 1 // every layer is a full one
	}
	gguf.SetSliding(c, "gemma3", f)
	return nil
}
