package types

import (
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Lfm2Moe is the configuration of model type "lfm2_moe": [Lfm2] with experts in all but the first layers. Absent keys
// have the defaults of transformers 5.23; sizes are required.
type Lfm2Moe struct {
	Lfm2
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "lfm2_moe",
		Architectures: []string{"Lfm2MoeForCausalLM"},
		GGUF:          []gguf.Map{ggufLfm2Moe},
		Published: table.Published{
			Experts:     table.PerExpert,
			Projections: table.Fused,
			Apart:       true,
			MLX: []string{
				".feed_forward.w1.", ".feed_forward.gate_proj.", ".feed_forward.w2.", ".feed_forward.down_proj.",
				".feed_forward.w3.", ".feed_forward.up_proj.",
			},
		},
		Docs: arch.Docs{
			Variants: "short convolutions with some layers of attention; experts; biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseLfm2Moe)
}

// ParseLfm2Moe parses the config.json of an lfm2_moe model.
func ParseLfm2Moe(data []byte) (*Lfm2Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Lfm2Moe{Lfm2: parseLfm2(top, o, "Lfm2MoeForCausalLM")}
	m.Intermediate = o.Size("intermediate_size", 0, config.MaxWidth)
	x := &m.Mixture
	d := config.MixtureDefaults{Count: 32, PerToken: 4, Width: 1792, SumToOne: true}
	x.ReadExperts(o, m.Common, d, "moe_intermediate_size")
	x.ReadDense(o, 2)
	x.Router = config.Router{
		Sigmoid: true, Correction: o.Bool("use_expert_bias", true),
		Scaling: o.Above("routed_scaling_factor", 1, 0),
	}
	return config.Done(m, o)
}

func (m *Lfm2Moe) Facts() config.Facts { return m.FactsAs("lfm2_moe", m.Rope, m.Table()) }

func (m *Lfm2Moe) Table() table.Table {
	t := m.table("lfm2_moe", m.Decoder())
	// Published experts have other names for their projections.
	letters := strings.NewReplacer(".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2.")
	for i := range t.Specs {
		s := &t.Specs[i]
		for _, f := range s.Forms {
			if f.Layout != table.PerExpert {
				continue
			}
			names := make([]string, len(f.Names))
			for j, name := range f.Names {
				names[j] = letters.Replace(name)
			}
			f.Names = names
			s.Forms = append([]table.Form{f}, s.Forms...) // first, as it is the one to write
			break
		}
	}
	return t
}

// Decoder implements [arch.Described].
func (m *Lfm2Moe) Decoder() config.Decoder {
	d := m.Lfm2.Decoder()
	d.Mixture = &m.Mixture
	return d
}
