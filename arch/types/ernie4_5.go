package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Ernie45 is the configuration of model type "ernie4_5" (ERNIE 4.5): a pre-norm decoder with interleaved rope. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Ernie45 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "ernie4_5",
		Plain:         true,
		Architectures: []string{"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"},
		GGUF:          []gguf.Map{ggufErnie45},
		Docs:          arch.Docs{Variants: "interleaved rope, biases everywhere, untied embeddings"},
	}, ParseErnie45)
}

// ParseErnie45 parses the config.json of an ernie4_5 model.
func ParseErnie45(data []byte) (*Ernie45, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Ernie45{config.ParseDense(top, o, config.Defaults{
		Class: "Ernie4_5ForCausalLM", KVHeads: 2, HeadDim: 128, Context: 1 << 17, NormEps: 1e-5, Tied: true, BOS: []int32{1},
		EOS: []int32{2},
	}, config.RopeOptions{Theta: 5e5}, config.SiLU...)}
	m.AttentionBias = o.Bool("use_bias", false)
	m.OutputBias, m.MLPBias = m.AttentionBias, m.AttentionBias
	return config.Done(m, o)
}

func (m *Ernie45) Facts() config.Facts { return m.FactsAs("ernie4_5", m.Rope, m.Table()) }

func (m *Ernie45) Table() table.Table { return m.Decoder().Table("ernie4_5") }

func (m *Ernie45) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}

// ggufErnie45 are the mappings of decoders like llama.
var ggufErnie45 = ernie45()

// ernie45 reads the bias of attention's output, too.
func ernie45() gguf.Map {
	g := gguf.WithBias(gguf.Plain("ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM"), "use_bias")
	g.Limits.Biases = gguf.AttentionBiases
	return g
}
