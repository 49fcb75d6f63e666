package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Ministral3 is the configuration of model type "ministral3" (Ministral 3) and of the text model of "mistral3" (Mistral
// Small 3, Ministral 3 with pictures), whose text part is a ministral3 or a mistral. The queries of a ministral3 grow
// with their position. Absent keys have the defaults of transformers 5.23; sizes are required.
type Ministral3 struct {
	config.Dense
	// GrowthBeta and GrowthContext scale queries by 1 + GrowthBeta*ln(1 + floor(position/GrowthContext)); 0 = they do not
	// grow.
	GrowthBeta    float64
	GrowthContext int
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "ministral3",
		Plain:         true,
		Aliases:       []string{"mistral3"},
		Architectures: []string{"Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufMistral3},
		TextOnly:      true,
		Docs: arch.Docs{
			Variants: "Ministral 3, text of Mistral Small 3 and of multimodal checkpoints; queries that grow with the position",
		},
	}, parseMistral3)
}

// parseMistral3 parses a configuration by the type of its text model.
func parseMistral3(data []byte) (arch.Model, error) {
	_, o, err := config.OpenText(data)
	switch {
	case err != nil:
		return nil, err
	case o.String("model_type", "") == "mistral4":
		return ParseMistral4(data)
	}
	return ParseMinistral3(data)
}

// ParseMinistral3 parses the config.json of a ministral3 or mistral3 model. It has no biases, whatever the file says.
func ParseMinistral3(data []byte) (*Ministral3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	grows := o.String("model_type", "") != mistral
	d := config.Defaults{
		Class: "Ministral3ForCausalLM", KVHeads: 8, HeadDim: 128, Context: 1 << 18, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2},
	}
	window := 0
	if !grows {
		d.HeadDim, d.Context, d.NormEps, window = 0, 1<<17, 1e-6, 4096
	} else if !o.Has("rope_parameters") && !o.Has("rope_scaling") {
		o.Keys["rope_parameters"] = json.RawMessage(`{"rope_type": "yarn", "rope_theta": 1e6, "factor": 16,
			"original_max_position_embeddings": 16384, "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}`)
	}
	m := &Ministral3{Dense: config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = false, false
	m.SlideEverywhere(o.Window("sliding_window", window))
	if grows {
		m.GrowthBeta, m.GrowthContext = parseGrowth(o, m.Context)
	}
	return config.Done(m, o)
}

// parseGrowth reads how queries grow with their position.
func parseGrowth(o config.Object, context int) (beta float64, from int) {
	in, ok := o.Object("rope_parameters")
	if !ok {
		in, _ = o.Object("rope_scaling")
	}
	if beta = in.AtLeast("llama_4_scaling_beta", 0, 0); beta > 0 {
		from = config.OriginalMax(o, in, context)
	}
	return beta, from
}

func (m *Ministral3) Facts() config.Facts { return m.FactsAs("ministral3", m.Rope, m.Table()) }

func (m *Ministral3) Table() table.Table {
	t := m.Decoder().Table("ministral3")
	config.DropTowers(&t, "ministral3")
	return t
}

func (m *Ministral3) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Growth: decoder.Growth{Beta: m.GrowthBeta, Context: m.GrowthContext},
	}}
}

// ggufMistral3 is the mapping of ministral3 and of mistral3's text model, with the changes of llama.
var ggufMistral3 = gguf.Map{
	Architecture: "mistral3",
	Limits:       gguf.Limits{Biases: gguf.AllBiases, Betas: true},
	LogScale:     1,
	Also: func(m gguf.Model) []gguf.Pair {
		if q, ok := m.(*Ministral3); ok && q.GrowthBeta > 0 {
			return []gguf.Pair{{Key: "attention.temperature_scale", Value: float32(q.GrowthBeta)}}
		}
		return nil
	},
	Config:  map[string]any{"model_type": "ministral3", "architectures": []string{"Ministral3ForCausalLM"}},
	Keys:    gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.MLP, gguf.PreNorms),
	Adjust: func(c map[string]any, f gguf.File) error {
		scaling, ok := c["rope_scaling"].(map[string]any)
		if !ok {
			c["rope_scaling"] = map[string]any{"rope_type": "default"}
			return nil
		}
		if v, ok := f.Value("mistral3.rope.scaling.yarn_log_multiplier"); ok {
			scaling["mscale"], scaling["mscale_all_dim"] = v, v
		}
		if v, ok := f.Value("mistral3.attention.temperature_scale"); ok {
			scaling["llama_4_scaling_beta"] = v
		}
		return nil
	},
}
