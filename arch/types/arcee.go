package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Arcee is the configuration of model type "arcee" (AFM): Llama with a plain MLP that squares the positive part. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Arcee struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "arcee",
		Plain:         true,
		Architectures: []string{"ArceeForCausalLM"},
		GGUF:          []gguf.Map{ggufArcee},
		Docs:          arch.Docs{Variants: "biases, tied embeddings"},
	}, ParseArcee)
}

// ParseArcee parses the config.json of an arcee model.
func ParseArcee(data []byte) (*Arcee, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "ArceeForCausalLM", Context: 4096, NormEps: 1e-5, BOS: []int32{128000},
		EOS: []int32{128001}}
	m := &Arcee{config.ParseDense(top, o, d, config.RopeOptions{}, "relu2")}
	m.MLPBias = o.Bool("mlp_bias", false)
	return config.Done(m, o)
}

func (m *Arcee) Facts() config.Facts { return m.FactsAs("arcee", m.Rope, m.Table()) }

func (m *Arcee) Table() table.Table { return m.Decoder().Table("arcee") }

func (m *Arcee) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{Plain: decoder.UpDown}}
}

var ggufArcee = arcee()

// arcee has the changes of llama.
func arcee() gguf.Map {
	g := gguf.Plain("arcee", "arcee", "ArceeForCausalLM")
	g.Tensors = slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.MLP, gguf.PreNorms)
	g.Adjust = func(c map[string]any, f gguf.File) error {
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return gguf.SetFactors(c, f)
	}
	return g
}
