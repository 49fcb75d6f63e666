package types

import (
	"encoding/json"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Mistral4 is the configuration of model type "mistral4" (Mistral Small 4), the text part: latent attention whose
// queries grow with their position, and experts that a softmax router chooses by groups. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Mistral4 struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "mistral4",
		Latent:        true,
		Architectures: []string{"Mistral4ForCausalLM"},
		GGUF:          []gguf.Map{ggufMistral4},
		TextOnly:      true,
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, " +
				"yarn, growing queries",
			Rules: "generic, also for experts",
		},
	}, ParseMistral4)
}

// ParseMistral4 parses the config.json of a mistral4 model.
func ParseMistral4(data []byte) (*Mistral4, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "Mistral4ForCausalLM", Context: 1 << 20, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2}}
	if !o.Has("rope_parameters") && !o.Has("rope_scaling") {
		o.Keys["rope_parameters"] = json.RawMessage(`{"rope_type": "yarn", "rope_theta": 1e4, "factor": 128,
			"original_max_position_embeddings": 8192, "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}`)
	}
	// transformers 5.23 gives the default type, and linear, as many frequencies as a whole head has.
	m := &Mistral4{config.ParseLatent(top, o, d,
		config.LatentDefaults{Query: 1024, Kv: 256, Nope: 64, Rope: 64, Value: 128},
		config.RopeOptions{Types: []config.RopeType{config.RopeYarn}})}
	m.Latent.Interleaved = o.Bool("rope_interleave", true)
	m.Latent.GrowthBeta, m.Latent.GrowthContext = parseGrowth(o, m.Context)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 128, PerToken: 4, Width: 2048, SumToOne: true, Scaling: 1, Shared: 1,
	})
	m.Mixture.Router.Sigmoid, m.Mixture.Router.Correction, m.Mixture.Router.Float32 = false, false, false
	m.Mixture.ReadDense(o, 0)
	return config.Done(m, o)
}

func (m *Mistral4) Facts() config.Facts { return m.FactsAs("mistral4", m.Rope, m.Table()) }

func (m *Mistral4) Table() table.Table {
	t := m.TableAs("mistral4")
	config.DropTowers(&t, "mistral4")
	return t
}

// ggufMistral4 is the mapping of mistral4, which is only imported. Files that the converter makes of published
// checkpoints in Hugging Face's layout do not say that queries grow.
var ggufMistral4 = mistral4()

func mistral4() gguf.Map {
	g := ggufDeepseek2
	g.Architecture, g.ImportOnly = "mistral4", true
	g.Config = map[string]any{
		"model_type": "mistral4", "architectures": []string{"Mistral4ForCausalLM"}, "q_lora_rank": nil,
	}
	g.Adjust = func(c map[string]any, f gguf.File) error {
		if err := gguf.SetLatent(c, g.Architecture, f); err != nil {
			return err
		}
		scaling, ok := c["rope_scaling"].(map[string]any)
		if !ok { // unlike an absent one, which is that of the published model
			scaling = map[string]any{"rope_type": "default"}
			c["rope_scaling"] = scaling
		}
		if v, ok := f.Value(g.Architecture + ".attention.temperature_scale"); ok {
			scaling["llama_4_scaling_beta"] = v
		}
		return gguf.SetSparse(c, f)
	}
	return g
}
