package types

import (
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Phi4Multimodal is the configuration of the text model of type "phi4_multimodal", which is that of phi3.
type Phi4Multimodal struct{ Phi3 }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "phi4_multimodal",
		Plain:         true,
		Aliases:       []string{"phi4mm"},
		Architectures: []string{"Phi4MultimodalForCausalLM", "Phi4MMForCausalLM"},
		TextOnly:      true,
		Published:     table.Published{Projections: table.Fused},
		Docs: arch.Docs{
			Variants: "text only, text of multimodal checkpoints; longrope, partial rope, sliding window",
		},
	}, ParsePhi4Multimodal)
}

// ParsePhi4Multimodal parses the config.json of a phi4_multimodal model.
func ParsePhi4Multimodal(data []byte) (*Phi4Multimodal, error) {
	m, err := parsePhi3(data, config.Defaults{
		Class: "Phi4MultimodalForCausalLM", KVHeads: 8, Context: 131072, NormEps: 1e-5, BOS: []int32{199999},
		EOS: []int32{199999, 200020},
	})
	if err != nil {
		return nil, err
	}
	return &Phi4Multimodal{*m}, nil
}

func (m *Phi4Multimodal) Facts() config.Facts { return m.FactsAs("phi4_multimodal", m.Rope, m.Table()) }

func (m *Phi4Multimodal) Table() table.Table {
	t := m.Phi3.Table()
	t.ModelType = "phi4_multimodal"
	// The first publication has adapters for images and sound beside each matrix. Text uses the matrix alone.
	for i := range t.Specs {
		s := &t.Specs[i]
		layer, ok := strings.CutSuffix(s.Name, ".weight")
		switch {
		case !ok || !strings.HasSuffix(layer, "_proj"):
		case len(s.Forms) == 0:
			s.Aliases = append(s.Aliases, layer+".base_layer.weight")
		default:
			f := s.Forms[0]
			f.Names = []string{strings.TrimSuffix(f.Names[0], ".weight") + ".base_layer.weight"}
			s.Forms = append(s.Forms, f)
		}
	}
	t.LeaveOut("lora", "adapters of images and sound are not imported", m.Prefix+"layers.*.lora_*")
	t.LeaveOut("embed_tokens_extend", "towers of images and sound are not imported", m.Prefix+"embed_tokens_extend.*")
	return t
}
