package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// SolarOpen is the configuration of model type "solar_open": a pre-norm decoder with experts of a sigmoid router and
// shared experts in every layer. Absent keys have the defaults of transformers 5.23; sizes are required.
type SolarOpen struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "solar_open",
		Plain:         true,
		Architectures: []string{"SolarOpenForCausalLM"},
		GGUF:          []gguf.Map{ggufGlm4Moe},
		Published:     table.Published{Experts: table.PerExpert},
		Idle: []arch.Idle{
			{Why: "all layers have experts, whose width has a key of its own", Keys: []string{"intermediate_size"}},
		},
		Docs: arch.Docs{
			Variants: "groups of experts, shared experts, biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseSolarOpen)
}

// ParseSolarOpen parses the config.json of a solar_open model. Every layer has experts, whatever the file says.
func ParseSolarOpen(data []byte) (*SolarOpen, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &SolarOpen{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "SolarOpenForCausalLM", KVHeads: 8, HeadDim: 128, Context: 1 << 17, NormEps: 1e-5,
	}, config.RopeOptions{Theta: 1e6})}
	m.OutputBias = false
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{Count: 128, PerToken: 8, Width: 1280, SumToOne: true,
		Shared: 1})
	return config.Done(m, o)
}

func (m *SolarOpen) Facts() config.Facts { return m.FactsAs("solar_open", m.Rope, m.Table()) }

func (m *SolarOpen) Table() table.Table { return m.Decoder().Table("solar_open") }

func (m *SolarOpen) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
