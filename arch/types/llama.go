package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Llama is the configuration of model type "llama": a pre-norm decoder with grouped-query attention and a gated MLP. It
// also covers "mistral", which adds a sliding window to all layers. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type Llama struct {
	config.Common
	Intermediate int
	Activation   string // always "silu"
	Rope         config.Rope
	Window       int // positions that a layer attends to, including its own; 0 = all. Only mistral sets it
}

func init() {
	arch.Register(arch.Arch{
		ModelType: "llama",
		Plain:     true,
		Aliases:   []string{mistral, internLM, internLM3, "xverse"},
		// The first published conversions have the second spelling.
		Architectures: []string{
			"LlamaForCausalLM", "LLaMAForCausalLM", mistralClass, "InternLMForCausalLM", "InternLM3ForCausalLM",
			"XverseForCausalLM",
		},
		GGUF:        []gguf.Map{ggufLlama},
		Equalizable: true,
		Plainest:    true,
		Docs: arch.Docs{
			Variants: "biases, tied embeddings, explicit head size, sliding window in all layers (Mistral); " +
				"XVERSE, InternLM 1 and 3",
			Reference: ", float64",
		},
	}, ParseLlama)
}

const (
	mistral      = "mistral"
	mistralClass = "MistralForCausalLM"
)

// ParseLlama parses the config.json of a llama or mistral model.
func ParseLlama(data []byte) (*Llama, error) {
	o, err := config.Parse(data)
	if err != nil {
		return nil, err
	}
	modelType := o.String("model_type", "")
	isMistral := modelType == mistral || modelType == "" && slices.Contains(o.Strings("architectures"), mistralClass)
	d := config.Defaults{Class: "LlamaForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2}}
	if isMistral {
		d.Class, d.Context = mistralClass, 1<<17
		d.KVHeads = 8
	}
	m := &Llama{
		Common:       config.ParseCommon(o, o, d),
		Intermediate: o.Required("intermediate_size", 1, config.MaxWidth),
		Activation:   o.Activation("hidden_act", config.SiLU...),
	}
	m.MLPBias = o.Bool("mlp_bias", false)
	switch {
	case isMistral:
		m.mistral(o)
	case modelType == internLM || modelType == internLM3:
		m.internLM(o, modelType)
	}
	m.Rope = config.ParseRope(o, m.Context, config.RopeOptions{HeadDim: m.HeadDim})
	m.Rope.IgnorePartial(o) // as transformers' default type does
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// mistral reads the keys specific to mistral: a window, which null disables, and no biases, whatever the file says.
func (m *Llama) mistral(o config.Object) {
	m.AttentionBias, m.OutputBias, m.MLPBias = false, false, false
	if _, given := o.Keys["sliding_window"]; !given {
		m.Window = 4096
	}
	m.Window = o.Integer("sliding_window", m.Window, 1, config.MaxContext)
}

func (m *Llama) State() []config.LayerState {
	return m.KVStates(m.Window, func(int) bool { return true })
}

func (m *Llama) Facts() config.Facts { return m.FactsAs("llama", m.Rope, m.Table()) }

func (m *Llama) Rules() precision.Rules { return precision.Generic(m.Layers) }

// Table implements [arch.Model]. Weights of linear layers are [out, in].
func (m *Llama) Table() table.Table { return m.Decoder().Table("llama") }

func (m *Llama) Decoder() config.Decoder {
	return config.Decoder{
		Dense: m.dense(),
	}
}

func (m *Llama) dense() *config.Dense {
	d := &config.Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope}
	d.SlideEverywhere(m.Window)
	return d
}

// ggufLlama is the mapping of llama. Mistral's models have the same architecture there, without their window, and with
// experts they are Mixtral's.
var ggufLlama = gguf.Map{
	Architecture: "llama",
	Limits:       gguf.Limits{Biases: gguf.AllBiases},
	Config:       map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "expert_count", To: "num_local_experts", Field: "Experts.Count", Optional: true},
		gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.Values, gguf.MLP, gguf.PreNorms, gguf.PairedQK, gguf.MoE),
	Adjust:  adjustLlama,
}

func adjustLlama(c map[string]any, f gguf.File) error {
	switch v, ok := f.Value("llama.expert_count"); {
	case ok && v != json.Number("0"):
		c["model_type"], c["architectures"] = "mixtral", []string{"MixtralForCausalLM"}
	default:
		delete(c, "num_local_experts")
		delete(c, "num_experts_per_tok")
	}
	if dim, ok := f.Value("llama.rope.dimension_count"); ok {
		if _, ok := c["head_dim"]; !ok {
			c["head_dim"] = dim
		}
	}
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["mlp_bias"] = f.Shape("blk.0.ffn_gate.bias")
	return gguf.SetFactors(c, f)
}
