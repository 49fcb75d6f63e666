package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// DeepseekV3 is the configuration of model type "deepseek_v3" (DeepSeek V3 and R1) and of Kimi K2: latent attention,
// and experts that a sigmoid router chooses by groups. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type DeepseekV3 struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "deepseek_v3",
		Latent:        true,
		Towers:        []string{"kimi_k25"},
		Aliases:       []string{"kimi_k2", "kimi_k25"},
		Architectures: []string{"DeepseekV3ForCausalLM", "KimiK25ForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufDeepseek2},
		Published:     table.Published{Experts: table.PerExpert},
		Variants: map[string]table.Published{
			"kimi_k25": {},
		},
		Wide: true,
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, yarn; " +
				"`kimi_k2`, text of Kimi K2.5",
			Rules: "generic, also for experts",
			Draft: nextDraftDoc,
		},
	}, ParseDeepseekV3)
}

// ParseDeepseekV3 parses the config.json of a deepseek_v3 or kimi_k2 model.
func ParseDeepseekV3(data []byte) (*DeepseekV3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV3{config.ParseLatent(top, o, config.Defaults{
		Class: "DeepseekV3ForCausalLM", Context: 4096, NormEps: 1e-6, BOS: []int32{0}, EOS: []int32{1},
	}, config.LatentDefaults{Query: 1536, Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{})}
	m.Latent.Interleaved = o.Bool("rope_interleave", true)
	m.NextLayers = o.FirstInteger(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers")
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 256, PerToken: 8, Width: 2048, SumToOne: true, Scaling: 2.5, Shared: 1, Groups: 8, TopGroups: 4,
	})
	m.Mixture.ReadDense(o, 3)
	o.CheckLayerFrequency()
	return config.Done(m, o)
}

func (m *DeepseekV3) Facts() config.Facts { return m.FactsAs("deepseek_v3", m.Rope, m.Table()) }

func (m *DeepseekV3) Table() table.Table {
	t := m.TableAs("deepseek_v3")
	config.DropTowers(&t, "deepseek_v3")
	t.Spellings = []string{"language_model.model.blocks.", "language_model.model.layers."} // of some files of Kimi K2.5
	return t
}
