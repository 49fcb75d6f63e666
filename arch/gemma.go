package arch

import (
	"math"

	"github.com/ingotml/ingot/arch/decoder"
)

// Gemma is the configuration of model type "gemma": a pre-norm decoder with norm weights used as 1 + w in float32, and
// embeddings multiplied by sqrt(hidden). Absent keys have the defaults of transformers 5.23; sizes are required.
type Gemma struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "gemma",
		Plain:         true,
		Architectures: []string{"GemmaForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGemma(config) },
		GGUF:          []GGUF{ggufGemma},
		Docs:          Docs{Variants: "one key head or several, biases, untied embeddings"},
	})
}

// ParseGemma parses the config.json of a gemma model. The first releases named the activation function "gelu" but meant
// its approximation.
func ParseGemma(config []byte) (*Gemma, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "GemmaForCausalLM", dim: 256, ctx: 8192, eps: 1e-6, tied: true, bos: []int32{2}, eos: []int32{1},
	}
	m := &Gemma{parseDense(top, o, d, ropeOptions{}, "gelu_pytorch_tanh", "gelu_tanh", "gelu")}
	o.causal()
	return parsed(m, o)
}

// causal rejects attention that sees later positions.
func (o object) causal() {
	if o.boolean("use_bidirectional_attention", false) {
		o.fail("use_bidirectional_attention", "be false: encoders are not supported")
	}
}

// Facts implements [Model].
func (m *Gemma) Facts() Facts { return m.facts("gemma", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Gemma) Table() Table { return m.preNorm("gemma", true) }

// Decoder implements [Described].
func (m *Gemma) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:           decoder.Norm{Offset: true},
		EmbeddingScale: math.Sqrt(float64(m.Hidden)),
	}}
}
