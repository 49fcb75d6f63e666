package arch

import (
	"math"
	"strings"

	"github.com/ingotml/ingot/arch/decoder"
)

// MiniCPM is the configuration of model type "minicpm" (MiniCPM, MiniCPM-MoE, MiniCPM4): Llama with scaled embeddings,
// residuals and logits, and experts in some models. Absent keys have the defaults of its publisher's
// configuration_minicpm.py; sizes are required.
type MiniCPM struct {
	Dense
	EmbeddingScale float64
	ResidualScale  float64 // of the output of each layer's parts
	LogitScale     float64
	Mixture        Mixture // of all layers; without experts there are none
}

func init() {
	register(Arch{
		ModelType:     "minicpm",
		Plain:         true,
		Architectures: []string{"MiniCPMForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMiniCPM(config) },
		Docs: Docs{
			Variants: "MiniCPM, MiniCPM-MoE and MiniCPM4: scales, experts named `w1` to `w3`, longrope; texts up to " +
				"`dense_len` of a `sparse_config`",
			Rules: "generic, also for experts",
			Code:  equals("granite"),
		},
	})
}

// ParseMiniCPM parses the config.json of a minicpm model. Attention is sparse beyond dense_len tokens, where the
// context of such a model ends.
func ParseMiniCPM(config []byte) (*MiniCPM, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &MiniCPM{Dense: parseDense(top, o, commonDefaults{
		class: "MiniCPMForCausalLM", ctx: 2048, eps: 1e-6, tied: true, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{}, silu...)}
	m.EmbeddingScale = o.above("scale_emb", 1, 0)
	m.ResidualScale = o.above("scale_depth", 1, 0) / math.Sqrt(float64(m.Layers))
	m.LogitScale = float64(o.integer("dim_model_base", 1, 1, maxWidth)) / float64(m.Hidden)
	if o.integer("num_experts", 0, 0, maxExperts) > 0 {
		m.Mixture.parseExperts(o, m.Common, mixtureDefaults{}, "intermediate_size")
		m.Mixture.Experts.NormTopK = true
	}
	if sparse, ok := o.object("sparse_config"); ok {
		m.Context = min(m.Context, sparse.required("dense_len", 1, maxContext))
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *MiniCPM) Facts() Facts { return m.facts("minicpm", m.Rope, m.Table()) }

// Table implements [Model].
func (m *MiniCPM) Table() Table {
	if m.Mixture.Experts.Count == 0 {
		return m.preNorm("minicpm", false)
	}
	t := m.decodes("minicpm", m.Mixture, nil)
	names := strings.NewReplacer(".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2.")
	for _, s := range t.Specs {
		for _, f := range s.Forms {
			if f.Layout != perExpert {
				continue
			}
			for i, name := range f.Names {
				f.Names[i] = names.Replace(name)
			}
		}
	}
	return t
}

// Decoder implements [Described].
func (m *MiniCPM) Decoder() Decoder {
	d := Decoder{Dense: &m.Dense, Description: decoder.Description{
		EmbeddingScale: m.EmbeddingScale,
		ResidualScale:  m.ResidualScale,
		LogitScale:     m.LogitScale,
	}}
	if m.Mixture.Experts.Count > 0 {
		d.Mixture = &m.Mixture
	}
	return d
}
