package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Orion is the configuration of model type "orion": Llama with LayerNorms. Absent keys have the defaults of its
// publisher's configuration_orion.py; sizes are required.
type Orion struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "orion",
		Plain:         true,
		Architectures: []string{"OrionForCausalLM"},
		Docs:          arch.Docs{Variants: "LayerNorms, tied embeddings", Code: equals("stablelm")},
	}, ParseOrion)
}

// ParseOrion parses the config.json of an orion model.
func ParseOrion(data []byte) (*Orion, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Orion{config.ParseDense(top, o, config.Defaults{
		Class: "OrionForCausalLM", Context: 4096, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2},
	}, config.RopeOptions{Types: []config.RopeType{config.RopeDefault, config.RopeLinear,
		config.RopeDynamic}}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = false, false
	return config.Done(m, o)
}

func (m *Orion) Facts() config.Facts { return m.FactsAs("orion", m.Rope, m.Table()) }

func (m *Orion) Table() table.Table { return m.Decoder().Table("orion") }

func (m *Orion) Decoder() config.Decoder {
	return config.Decoder{
		Dense:       &m.Dense,
		Description: decoder.Description{Norm: decoder.Norm{LayerNorm: true, Bias: true}},
	}
}
