package arch

import (
	"encoding/json"

	"github.com/ingotml/ingot/arch/decoder"
)

// Ministral3 is the configuration of model type "ministral3" (Ministral 3) and of the text model of "mistral3" (Mistral
// Small 3, Ministral 3 with pictures), whose text part is a ministral3 or a mistral. The queries of a ministral3 grow
// with their position. Absent keys have the defaults of transformers 5.23; sizes are required.
type Ministral3 struct {
	Dense
	// GrowthBeta and GrowthContext scale queries by 1 + GrowthBeta*ln(1 + floor(position/GrowthContext)); 0 = they do not
	// grow.
	GrowthBeta    float64
	GrowthContext int
}

func init() {
	register(Arch{
		ModelType:     "ministral3",
		Plain:         true,
		Aliases:       []string{"mistral3"},
		Architectures: []string{"Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"},
		Parse:         parseMistral3,
		GGUF:          []GGUF{ggufMistral3},
		TextOnly:      true,
		Docs: Docs{
			Variants: "Ministral 3, text of Mistral Small 3 and of multimodal checkpoints; queries that grow with the position",
		},
	})
}

// parseMistral3 parses a configuration by the type of its text model.
func parseMistral3(config []byte) (Model, error) {
	_, o, err := openText(config)
	switch {
	case err != nil:
		return nil, err
	case o.str("model_type", "") == "mistral4":
		return ParseMistral4(config)
	}
	return ParseMinistral3(config)
}

// ParseMinistral3 parses the config.json of a ministral3 or mistral3 model. It has no biases, whatever the file says.
func ParseMinistral3(config []byte) (*Ministral3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	grows := o.str("model_type", "") != mistral
	d := commonDefaults{
		class: "Ministral3ForCausalLM", kv: 8, dim: 128, ctx: 1 << 18, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
	}
	window := 0
	if !grows {
		d.dim, d.ctx, d.eps, window = 0, 1<<17, 1e-6, 4096
	} else if !o.has("rope_parameters") && !o.has("rope_scaling") {
		o.raw["rope_parameters"] = json.RawMessage(`{"rope_type": "yarn", "rope_theta": 1e6, "factor": 16,
			"original_max_position_embeddings": 16384, "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}`)
	}
	m := &Ministral3{Dense: parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = false, false
	m.everywhere(o.window("sliding_window", window))
	if grows {
		m.GrowthBeta, m.GrowthContext = parseGrowth(o, m.Context)
	}
	return parsed(m, o)
}

// parseGrowth reads how queries grow with their position.
func parseGrowth(o object, context int) (beta float64, from int) {
	in, ok := o.object("rope_parameters")
	if !ok {
		in, _ = o.object("rope_scaling")
	}
	if beta = in.atLeast("llama_4_scaling_beta", 0, 0); beta > 0 {
		from = originalMax(o, in, context)
	}
	return beta, from
}

// Facts implements [Model].
func (m *Ministral3) Facts() Facts { return m.facts("ministral3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Ministral3) Table() Table {
	t := m.preNorm("ministral3", false)
	t.dropTowers("ministral3")
	return t
}

// Decoder implements [Described].
func (m *Ministral3) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Description: decoder.Description{
		Growth: decoder.Growth{Beta: m.GrowthBeta, Context: m.GrowthContext},
	}}
}
