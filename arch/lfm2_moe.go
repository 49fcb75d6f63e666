package arch

import "strings"

// Lfm2Moe is the configuration of model type "lfm2_moe": [Lfm2] with experts in all but the first layers. Absent keys
// have the defaults of transformers 5.23; sizes are required.
type Lfm2Moe struct {
	Lfm2
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "lfm2_moe",
		Architectures: []string{"Lfm2MoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseLfm2Moe(config) },
		GGUF:          []GGUF{ggufLfm2Moe},
		Docs: Docs{
			Variants: "short convolutions with some layers of attention; experts; biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseLfm2Moe parses the config.json of an lfm2_moe model.
func ParseLfm2Moe(config []byte) (*Lfm2Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Lfm2Moe{Lfm2: parseLfm2(top, o, "Lfm2MoeForCausalLM")}
	m.Intermediate = o.size("intermediate_size", 0, maxWidth)
	x := &m.Mixture
	d := mixtureDefaults{count: 32, perToken: 4, width: 1792, sumToOne: true}
	x.parseExperts(o, m.Common, d, "moe_intermediate_size")
	x.parseDense(o, 2)
	x.Router = Router{
		Sigmoid: true, Correction: o.boolean("use_expert_bias", true),
		Scaling: o.above("routed_scaling_factor", 1, 0),
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Lfm2Moe) Facts() Facts { return m.facts("lfm2_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Lfm2Moe) Table() Table {
	t := m.table("lfm2_moe", func(t *Table, layer string, i int) {
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"feed_forward", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"feed_forward", m.Intermediate)
		}
	})
	// Published experts have other names for their projections.
	letters := strings.NewReplacer(".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2.")
	for i := range t.Specs {
		s := &t.Specs[i]
		for _, f := range s.Forms {
			if f.Layout != perExpert {
				continue
			}
			names := make([]string, len(f.Names))
			for j, name := range f.Names {
				names[j] = letters.Replace(name)
			}
			f.Names = names
			s.Forms = append([]Form{f}, s.Forms...) // first, as it is the one to write
			break
		}
	}
	return t
}
