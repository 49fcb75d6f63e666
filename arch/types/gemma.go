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

// Gemma is the configuration of model type "gemma": a pre-norm decoder with norm weights used as 1 + w in float32, and
// embeddings multiplied by sqrt(hidden). Absent keys have the defaults of transformers 5.23; sizes are required.
type Gemma struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gemma",
		Plain:         true,
		Architectures: []string{"GemmaForCausalLM"},
		GGUF:          []gguf.Map{ggufGemma},
		Docs:          arch.Docs{Variants: "one key head or several, biases, untied embeddings"},
	}, ParseGemma)
}

// ParseGemma parses the config.json of a gemma model. The first releases named the activation function "gelu" but meant
// its approximation.
func ParseGemma(data []byte) (*Gemma, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "GemmaForCausalLM", HeadDim: 256, Context: 8192, NormEps: 1e-6, Tied: true, BOS: []int32{2}, EOS: []int32{1},
	}
	m := &Gemma{config.ParseDense(top, o, d, config.RopeOptions{}, "gelu_pytorch_tanh", "gelu_tanh", "gelu")}
	checkCausal(o)
	return config.Done(m, o)
}

// checkCausal rejects attention that sees later positions.
func checkCausal(o config.Object) {
	if o.Bool("use_bidirectional_attention", false) {
		o.Fail("use_bidirectional_attention", "be false: encoders are not supported")
	}
}

func (m *Gemma) Facts() config.Facts { return m.FactsAs("gemma", m.Rope, m.Table()) }

func (m *Gemma) Table() table.Table { return m.Decoder().Table("gemma") }

func (m *Gemma) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:           decoder.Norm{Offset: true},
		EmbeddingScale: math.Sqrt(float64(m.Hidden)),
	}}
}

// ggufGemma is the mapping of gemma. Weights of norms have 1 added; the head is the embedding.
var ggufGemma = gguf.Map{
	Architecture: "gemma",
	Limits:       gguf.Limits{Tied: true},
	Config:       map[string]any{"model_type": "gemma", "architectures": []string{"GemmaForCausalLM"}},
	Keys:         gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.PlusOne), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.PlusOne,
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight")),
	Adjust: gguf.SetBiases,
}
