package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// GptOss is the configuration of model type "gpt_oss": experts with biases and a clamped activation in every layer,
// attention with sinks, and sliding windows in some layers. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type GptOss struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gpt_oss",
		Plain:         true,
		Architectures: []string{"GptOssForCausalLM"},
		Chat:          &arch.Chat{Marks: []string{"gptoss", "gpt_oss"}, Parser: "harmony", Renderer: "harmony", Thinks: true},
		GGUF:          []gguf.Map{ggufGptOss},
		Idle: []arch.Idle{
			{Why: "another key of the type says it", Keys: []string{"experts_per_token", "initial_context_length"}},
		},
		Docs: arch.Docs{
			Variants: "experts as published, in mxfp4, whose codes are kept; in columns, or stacked; sliding windows by layer",
			Rules:    "generic, also for experts",
		},
	}, ParseGptOss)
}

// gptOssRope are the rope parameters of a configuration without any.
const gptOssRope = `{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
	"original_max_position_embeddings": 4096}`

// ParseGptOss parses the config.json of a gpt_oss model.
func ParseGptOss(data []byte) (*GptOss, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	if !o.Has("rope_scaling") && !o.Has("rope_parameters") {
		o.Keys["rope_parameters"] = json.RawMessage(gptOssRope)
	}
	d := config.Defaults{Class: "GptOssForCausalLM", KVHeads: 8, HeadDim: 64, Context: 1 << 17, NormEps: 1e-5}
	m := &GptOss{Dense: config.ParseDecoder(top, o, d, config.RopeOptions{Theta: 150000})}
	m.AttentionBias = o.Bool("attention_bias", true)
	m.OutputBias = m.AttentionBias
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 128, PerToken: 4}, "intermediate_size")
	// The weights are a softmax over the scores of the chosen experts.
	x.Router = config.Router{Name: "router", Bias: true}
	x.Experts.NormTopK, x.Experts.Bias = true, true
	x.Experts.Clamp = config.Clamp{Alpha: o.Above("swiglu_alpha", 1.702, 0), Limit: o.Above("swiglu_limit", 7, 0)}
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	sliding := config.SlidingOf(kinds)
	if kinds == nil {
		sliding = everyOther(m.Layers)
	}
	m.Slide(o.Window("sliding_window", 128), sliding)
	return config.Done(m, o)
}

// everyOther returns layers of which the first slides, the second does not, and so on.
func everyOther(layers int) []bool {
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = i%2 == 0
	}
	return sliding
}

func (m *GptOss) Facts() config.Facts { return m.FactsAs("gpt_oss", m.Rope, m.Table()) }

func (m *GptOss) Table() table.Table { return m.Decoder().Table("gpt_oss") }

func (m *GptOss) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       &m.Dense,
		Mixture:     &m.Mixture,
		Description: decoder.Description{Sinks: config.EveryLayer(m.Layers)},
	}
}

// ggufGptOss is the mapping of gpt_oss. Files do not say that the corrections of yarn are not rounded.
var ggufGptOss = gguf.Map{
	Architecture: "gpt-oss",
	Limits:       gguf.Limits{Biases: gguf.AttentionBiases, Unrounded: true},
	Config: map[string]any{
		"model_type": "gpt_oss", "architectures": []string{"GptOssForCausalLM"}, "attention_bias": true,
	},
	Keys: gguf.CountKeys("num_local_experts",
		gguf.Key{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate", Optional: true},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values,
		gguf.Linears(gguf.Op{}, "ffn_gate_inp", "mlp.router", "ffn_gate_exps", "mlp.experts.gate_proj",
			"ffn_up_exps", "mlp.experts.up_proj", "ffn_down_exps", "mlp.experts.down_proj"),
		gguf.Names(gguf.Op{}, "attn_sinks.weight", "self_attn.sinks", "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight")),
	Adjust: func(c map[string]any, _ gguf.File) error {
		if rope, ok := c["rope_scaling"].(map[string]any); ok {
			rope["truncate"] = false
		}
		return nil
	},
}
