package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Ministral is the configuration of model type "ministral": Mistral with a window in some layers. Absent keys have the
// defaults of transformers 5.23; sizes are required.
type Ministral struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "ministral",
		Plain:         true,
		Architectures: []string{"MinistralForCausalLM"},
		Docs:          arch.Docs{Variants: "sliding layers by `layer_types`, or all"},
	}, ParseMinistral)
}

// ParseMinistral parses the config.json of a ministral model. It has no biases, whatever the file says.
func ParseMinistral(data []byte) (*Ministral, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "MinistralForCausalLM", KVHeads: 8, Context: 1 << 17, NormEps: 1e-6, BOS: []int32{1},
		EOS: []int32{2}}
	m := &Ministral{config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = false, false
	m.SlideEverywhere(o.Window("sliding_window", 4096))
	if kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention); kinds != nil {
		m.Slide(m.Window, config.SlidingOf(kinds))
	}
	return config.Done(m, o)
}

func (m *Ministral) Facts() config.Facts { return m.FactsAs("ministral", m.Rope, m.Table()) }

func (m *Ministral) Table() table.Table { return m.Decoder().Table("ministral") }

func (m *Ministral) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}
