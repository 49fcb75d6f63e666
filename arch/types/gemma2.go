package types

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Gemma2 is the configuration of model type "gemma2": norms before and after attention and MLP, with weights used as 1
// + w in float32; embeddings multiplied by sqrt(hidden); every other layer sliding; soft caps of attention scores and
// logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type Gemma2 struct {
	config.Dense
	QueryScalar float64 // query_pre_attn_scalar: attention scores are divided by its square root
	ScoreCap    float64 // attn_logit_softcapping; 0 = none
	LogitCap    float64 // final_logit_softcapping; 0 = none
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gemma2",
		Architectures: []string{"Gemma2ForCausalLM"},
		GGUF:          []gguf.Map{ggufGemma2},
		Idle: []arch.Idle{
			{Why: "another key of the type says it", Keys: []string{"hidden_act", "sliding_window_size"}},
		},
		Docs: arch.Docs{Variants: "sliding layers between full ones, soft caps of scores and logits, biases"},
	}, ParseGemma2)
}

// ParseGemma2 parses the config.json of a gemma2 model.
func ParseGemma2(data []byte) (*Gemma2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	if key := "hidden_activation"; o.Has(key) {
		o.Keys["hidden_act"] = o.Keys[key]
	}
	m := &Gemma2{
		Dense: config.ParseDense(top, o, config.Defaults{
			Class: "Gemma2ForCausalLM", KVHeads: 4, HeadDim: 256, Context: 8192, NormEps: 1e-6, Tied: true, BOS: []int32{2},
			EOS: []int32{1},
		}, config.RopeOptions{}, config.GELU...),
		QueryScalar: o.Above("query_pre_attn_scalar", 256, 0),
		ScoreCap:    o.Limit("attn_logit_softcapping", 50),
		LogitCap:    o.Limit("final_logit_softcapping", 30),
	}
	m.Slide(o.Integer("sliding_window", 4096, 1, config.MaxContext), config.ParsePattern(o, m.Layers, 2))
	checkCausal(o)
	return config.Done(m, o)
}

func (m *Gemma2) Facts() config.Facts { return m.FactsAs("gemma2", m.Rope, m.Table()) }

func (m *Gemma2) Table() table.Table { return m.Decoder().Table("gemma2") }

func (m *Gemma2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:           decoder.Norm{Offset: true},
		Norms:          decoder.Around,
		AttentionScale: 1 / math.Sqrt(m.QueryScalar),
		EmbeddingScale: math.Sqrt(float64(m.Hidden)),
		LogitCap:       m.LogitCap,
	}}
}

// ggufGemma2 is the mapping of gemma2. Files of 27B, with 46 layers, scale queries by the size of a layer's channels
// per head.
var ggufGemma2 = gguf.Map{
	Architecture: "gemma2",
	Limits:       gguf.Limits{Tied: true},
	Config:       map[string]any{"model_type": "gemma2", "architectures": []string{"Gemma2ForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true},
		gguf.Key{Key: "attn_logit_softcapping", To: "attn_logit_softcapping", Field: "ScoreCap", Optional: true},
		gguf.Key{Key: "final_logit_softcapping", To: "final_logit_softcapping", Field: "LogitCap", Optional: true},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.PlusOne,
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return ggufQueryScalar(c, 46)
	},
}

// ggufQueryScalar sets the scale of Gemma's attention scores: the size of a head or, in the model with large layers,
// the channels of a layer per head.
func ggufQueryScalar(c map[string]any, large int) error {
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	if _, ok := c["head_dim"]; !ok {
		c["head_dim"] = 256
	}
	c["query_pre_attn_scalar"] = c["head_dim"]
	if layers == large {
		hidden, errHidden := gguf.Number(c, "hidden_size")
		heads, errHeads := gguf.Number(c, "num_attention_heads")
		if errHidden == nil && errHeads == nil && heads > 0 {
			c["query_pre_attn_scalar"] = hidden / heads
		}
	}
	return nil
}
