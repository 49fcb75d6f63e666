package types

import (
	"math"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// MiniCPM is the configuration of model type "minicpm" (MiniCPM, MiniCPM-MoE, MiniCPM4): Llama with scaled embeddings,
// residuals and logits, and experts in some models. Absent keys have the defaults of its publisher's
// configuration_minicpm.py; sizes are required.
type MiniCPM struct {
	config.Dense
	EmbeddingScale float64
	ResidualScale  float64 // of the output of each layer's parts
	LogitScale     float64
	Mixture        config.Mixture // of all layers; without experts there are none
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "minicpm",
		Plain:         true,
		Architectures: []string{"MiniCPMForCausalLM"},
		Published:     table.Published{Experts: table.PerExpert},
		Docs: arch.Docs{
			Variants: "MiniCPM, MiniCPM-MoE and MiniCPM4: scales, experts named `w1` to `w3`, longrope; texts up to " +
				"`dense_len` of a `sparse_config`",
			Rules: "generic, also for experts",
			Code:  equals("granite"),
		},
	}, ParseMiniCPM)
}

// ParseMiniCPM parses the config.json of a minicpm model. Attention is sparse beyond dense_len tokens, where the
// context of such a model ends.
func ParseMiniCPM(data []byte) (*MiniCPM, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &MiniCPM{Dense: config.ParseDense(top, o, config.Defaults{
		Class: "MiniCPMForCausalLM", Context: 2048, NormEps: 1e-6, Tied: true, BOS: []int32{1}, EOS: []int32{2},
	}, config.RopeOptions{}, config.SiLU...)}
	m.EmbeddingScale = o.Above("scale_emb", 1, 0)
	m.ResidualScale = o.Above("scale_depth", 1, 0) / math.Sqrt(float64(m.Layers))
	m.LogitScale = float64(o.Integer("dim_model_base", 1, 1, config.MaxWidth)) / float64(m.Hidden)
	if o.Integer("num_experts", 0, 0, config.MaxExperts) > 0 {
		m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{}, "intermediate_size")
		m.Mixture.Experts.NormTopK = true
	}
	if sparse, ok := o.Object("sparse_config"); ok {
		m.Context = min(m.Context, sparse.Required("dense_len", 1, config.MaxContext))
	}
	return config.Done(m, o)
}

func (m *MiniCPM) Facts() config.Facts { return m.FactsAs("minicpm", m.Rope, m.Table()) }

func (m *MiniCPM) Table() table.Table {
	t := m.Decoder().Table("minicpm")
	names := strings.NewReplacer(".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2.")
	for _, s := range t.Specs {
		for _, f := range s.Forms {
			if f.Layout != table.PerExpert {
				continue
			}
			for i, name := range f.Names {
				f.Names[i] = names.Replace(name)
			}
		}
	}
	return t
}

func (m *MiniCPM) Decoder() config.Decoder {
	d := config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     m.LogitScale,
	}}
	if m.Mixture.Experts.Count > 0 {
		d.Mixture = &m.Mixture
	}
	return d
}
