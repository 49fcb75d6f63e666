package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Mixtral is the configuration of model type "mixtral": Llama with experts in every layer. All layers may have a
// sliding window. Absent keys have the defaults of transformers 5.23; sizes are required.
type Mixtral struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "mixtral",
		Plain:         true,
		Architectures: []string{"MixtralForCausalLM"},
		GGUF:          []gguf.Map{ggufLlama},
		// In GGUF files it is a llama with experts.
		Published: table.Published{
			Experts:     table.PerExpert,
			HuggingFace: table.BlockSparse[1],
			MLX:         table.BlockSparse[0],
		},
		Equalizable: true,
		Docs: arch.Docs{
			Variants: "experts named `w1` to `w3`, stacked or separate; sliding window in all layers",
			Rules:    "generic, also for experts",
		},
	}, ParseMixtral)
}

// ParseMixtral parses the config.json of a mixtral model.
func ParseMixtral(data []byte) (*Mixtral, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "MixtralForCausalLM", KVHeads: 8, Context: 1 << 17, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	m := &Mixtral{Dense: config.ParseDecoder(top, o, d, config.RopeOptions{Theta: 1e6})}
	m.AttentionBias, m.OutputBias = false, false
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2}, "intermediate_size")
	m.Mixture.Experts.NormTopK = true
	m.SlideEverywhere(o.Window("sliding_window", 0))
	return config.Done(m, o)
}

func (m *Mixtral) Facts() config.Facts { return m.FactsAs("mixtral", m.Rope, m.Table()) }

func (m *Mixtral) Table() table.Table {
	t := m.Decoder().Table("mixtral")
	t.Also(table.BlockSparse...)
	return t
}

func (m *Mixtral) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
}
