package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// SmolLM3 is the configuration of model type "smollm3": Llama whose every fourth layer has no rope. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type SmolLM3 struct {
	config.Dense
	Rotates []bool // by layer: queries and keys are rotated
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "smollm3",
		Plain:         true,
		Architectures: []string{"SmolLM3ForCausalLM"},
		GGUF:          []gguf.Map{ggufSmolLM3},
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Docs: arch.Docs{Variants: "layers without rope, sliding layers, biases, untied embeddings"},
	}, ParseSmolLM3)
}

// ParseSmolLM3 parses the config.json of a smollm3 model.
func ParseSmolLM3(data []byte) (*SmolLM3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &SmolLM3{Dense: config.ParseDense(top, o, config.Defaults{
		Class: "SmolLM3ForCausalLM", KVHeads: 4, Context: 32768, NormEps: 1e-6, Tied: true, BOS: []int32{128000},
		EOS: []int32{128001},
	}, config.RopeOptions{Theta: 2e6}, config.SiLU...)}
	m.MLPBias = o.Bool("mlp_bias", false)
	m.Rotates = config.ParseRotates(o, m.Layers)
	sliding := make([]bool, m.Layers)
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	for i := range sliding {
		sliding[i] = !m.Rotates[i]
		if kinds != nil {
			sliding[i] = kinds[i] == config.SlidingAttention
		}
	}
	if o.Bool("use_sliding_window", false) {
		m.Slide(o.Window("sliding_window", 0), sliding)
	}
	return config.Done(m, o)
}

func (m *SmolLM3) Facts() config.Facts { return m.FactsAs("smollm3", m.Rope, m.Table()) }

func (m *SmolLM3) Table() table.Table { return m.Decoder().Table("smollm3") }

func (m *SmolLM3) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{RopeLayers: m.Rotates}}
}

// ggufSmolLM3 is the mapping of smollm3, which has the changes of llama. llama.cpp takes the rope from every fourth
// layer, whatever a file says.
var ggufSmolLM3 = gguf.Map{
	Architecture: "smollm3",
	Config: map[string]any{
		"model_type": "smollm3", "architectures": []string{"SmolLM3ForCausalLM"}, "no_rope_layer_interval": 4,
	},
	Keys:    gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.MLP, gguf.PreNorms),
	Adjust:  gguf.SetBiases,
}
