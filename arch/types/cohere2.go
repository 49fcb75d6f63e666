package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Cohere2 is the configuration of model type "cohere2" (Command R7B, Command A): cohere with three sliding layers
// before each full one, which has no rope. Absent keys have the defaults of transformers 5.23; sizes are required.
type Cohere2 struct {
	config.Dense
	LogitScale float64
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "cohere2",
		Plain:         true,
		Architectures: []string{"Cohere2ForCausalLM"},
		GGUF:          []gguf.Map{ggufCohere2},
		Docs: arch.Docs{
			Variants: "parallel blocks, sliding layers, full layers without rope, biases, untied embeddings",
		},
	}, ParseCohere2)
}

// ParseCohere2 parses the config.json of a cohere2 model.
func ParseCohere2(data []byte) (*Cohere2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Cohere2{
		Dense:      parseCohere(top, o, "Cohere2ForCausalLM", config.RopeOptions{}),
		LogitScale: o.Above("logit_scale", 0.0625, 0),
	}
	m.Slide(o.Integer("sliding_window", 4096, 1, config.MaxContext), config.ParsePattern(o, m.Layers, 4))
	return config.Done(m, o)
}

// Rotates reports whether a layer has a rope: the sliding ones.
func (m *Cohere2) Rotates(i int) bool { return m.Window > 0 && m.Sliding[i] }

func (m *Cohere2) Facts() config.Facts { return m.FactsAs("cohere2", m.Rope, m.Table()) }

func (m *Cohere2) Table() table.Table { return m.Decoder().Table("cohere2") }

func (m *Cohere2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		RopeLayers:  m.SlidingLayers(),
		LogitScale:  m.LogitScale,
	}}
}
