package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Glm4MoeLite is the configuration of model type "glm4_moe_lite" (GLM-4.7-Flash): latent attention, and experts of a
// sigmoid router. Absent keys have the defaults of transformers 5.23; sizes are required.
type Glm4MoeLite struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "glm4_moe_lite",
		Latent:        true,
		Architectures: []string{"Glm4MoeLiteForCausalLM"},
		GGUF:          []gguf.Map{ggufDeepseek2},
		Chat:          &arch.Chat{Marks: []string{"glm4", "glm-4"}, Parser: "glm-4.7", Renderer: "glm-4.7", Thinks: true},
		Published:     table.Published{Experts: table.PerExpert},
		Wide:          true,
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers",
			Rules:    "generic, also for experts",
			Draft:    nextDraftDoc,
		},
	}, ParseGlm4MoeLite)
}

// ParseGlm4MoeLite parses the config.json of a glm4_moe_lite model.
func ParseGlm4MoeLite(data []byte) (*Glm4MoeLite, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Glm4MoeLite{config.ParseLatent(top, o, config.Defaults{
		Class: "Glm4MoeLiteForCausalLM", Context: 202752, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{1},
	}, config.LatentDefaults{Query: 768, Kv: 512, Nope: 192, Rope: 64, Value: 256}, config.RopeOptions{})}
	m.Latent.Interleaved = o.Bool("rope_interleave", true)
	m.NextLayers = o.Integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 64, PerToken: 4, Width: 1536, SumToOne: true, Scaling: 1.8, Shared: 1,
	})
	m.Mixture.ReadDense(o, 1)
	return config.Done(m, o)
}

func (m *Glm4MoeLite) Facts() config.Facts { return m.FactsAs("glm4_moe_lite", m.Rope, m.Table()) }

func (m *Glm4MoeLite) Table() table.Table { return m.TableAs("glm4_moe_lite") }
