package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Helium is the configuration of model type "helium": a pre-norm decoder with interleaved rope. Absent keys have the
// defaults of transformers 5.23; sizes are required.
type Helium struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "helium",
		Plain:         true,
		Architectures: []string{"HeliumForCausalLM"},
		Docs:          arch.Docs{Variants: "interleaved rope, biases, tied embeddings"},
	}, ParseHelium)
}

// ParseHelium parses the config.json of a helium model. The output projection has no bias.
func ParseHelium(data []byte) (*Helium, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "HeliumForCausalLM", HeadDim: 128, Context: 4096, NormEps: 1e-8, BOS: []int32{1},
		EOS: []int32{2}}
	m := &Helium{config.ParseDense(top, o, d, config.RopeOptions{Theta: 1e5}, config.SiLU...)}
	m.OutputBias, m.MLPBias = false, o.Bool("mlp_bias", false)
	return config.Done(m, o)
}

func (m *Helium) Facts() config.Facts { return m.FactsAs("helium", m.Rope, m.Table()) }

func (m *Helium) Table() table.Table { return m.Decoder().Table("helium") }

func (m *Helium) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{Interleaved: true}}
}
