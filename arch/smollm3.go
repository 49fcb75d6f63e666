package arch

import (
	"fmt"

	"github.com/ingotml/ingot/arch/decoder"
)

// SmolLM3 is the configuration of model type "smollm3": Llama whose every fourth layer has no rope. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type SmolLM3 struct {
	Dense
	Rotates []bool // by layer: queries and keys are rotated
}

func init() {
	register(Arch{
		ModelType:     "smollm3",
		Plain:         true,
		Architectures: []string{"SmolLM3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseSmolLM3(config) },
		GGUF:          []GGUF{ggufSmolLM3},
		Docs:          Docs{Variants: "layers without rope, sliding layers, biases, untied embeddings"},
	})
}

// ParseSmolLM3 parses the config.json of a smollm3 model.
func ParseSmolLM3(config []byte) (*SmolLM3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &SmolLM3{Dense: parseDense(top, o, commonDefaults{
		class: "SmolLM3ForCausalLM", kv: 4, ctx: 32768, eps: 1e-6, tied: true, bos: []int32{128000}, eos: []int32{128001},
	}, ropeOptions{theta: 2e6}, silu...)}
	m.MLPBias = o.boolean("mlp_bias", false)
	m.Rotates = parseRotates(o, m.Layers)
	sliding := make([]bool, m.Layers)
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	for i := range sliding {
		sliding[i] = !m.Rotates[i]
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		}
	}
	if o.boolean("use_sliding_window", false) {
		m.slide(o.window("sliding_window", 0), sliding)
	}
	return parsed(m, o)
}

// parseRotates reads which layers have a rope: those with a 1 in no_rope_layers, which despite its name lists the
// others as 0, or all but every no_rope_layer_interval-th.
func parseRotates(o object, layers int) []bool {
	const key = "no_rope_layers"
	rotates := make([]bool, layers)
	list := o.integers(key, maxLayers, 0, 1)
	every := o.integer("no_rope_layer_interval", 4, 1, maxLayers)
	if len(list) > 0 && len(list) < layers {
		o.fail(key, fmt.Sprintf("have an element per layer, %d (it has %d)", layers, len(list)))
		return rotates
	}
	for i := range rotates {
		rotates[i] = (i+1)%every != 0
		if len(list) > 0 {
			rotates[i] = list[i] == 1
		}
	}
	return rotates
}

// Facts implements [Model].
func (m *SmolLM3) Facts() Facts { return m.facts("smollm3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *SmolLM3) Table() Table { return m.preNorm("smollm3", false) }

// Decoder implements [Described].
func (m *SmolLM3) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{RopeLayers: m.Rotates}}
}
