package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Youtu is the configuration of model type "youtu" (Youtu-LLM): latent attention and a dense feed-forward block. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Youtu struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "youtu",
		Latent:        true,
		Aliases:       []string{"youtu_llm"},
		Architectures: []string{"YoutuForCausalLM"},
		GGUF:          []gguf.Map{ggufDeepseek2},
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{Variants: "low-rank or single query projection, rotated pairs in either layout, biases"},
	}, ParseYoutu)
}

// ParseYoutu parses the config.json of a youtu model.
func ParseYoutu(data []byte) (*Youtu, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Youtu{config.ParseLatent(top, o, config.Defaults{
		Class: "YoutuForCausalLM", Context: 131072, NormEps: 1e-6, Tied: true, BOS: []int32{128000}, EOS: []int32{128001},
	}, config.LatentDefaults{Query: 1536, Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{})}
	m.Latent.Interleaved = o.Bool("rope_interleave", true)
	return config.Done(m, o)
}

func (m *Youtu) Facts() config.Facts { return m.FactsAs("youtu", m.Rope, m.Table()) }

func (m *Youtu) Table() table.Table { return m.TableAs("youtu") }
