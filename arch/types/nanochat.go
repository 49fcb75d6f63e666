package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// NanoChat is the configuration of model type "nanochat": a pre-norm decoder whose norms have no weights, with one
// after the embedding and ones of query and key heads after an inverse rope; a plain MLP that squares the positive
// part; and capped logits. Absent keys have the defaults of transformers 5.23; sizes are required.
type NanoChat struct {
	config.Dense
	LogitCap float64 // final_logit_softcapping; 0 = none
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "nanochat",
		Architectures: []string{"NanoChatForCausalLM"},
		Docs:          arch.Docs{Variants: "norms without weights, inverse rope, capped logits, biases"},
	}, ParseNanoChat)
}

// ParseNanoChat parses the config.json of a nanochat model.
func ParseNanoChat(data []byte) (*NanoChat, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "NanoChatForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{0}, EOS: []int32{1}}
	// The others depend on the length of the text.
	types := []config.RopeType{config.RopeDefault, config.RopeLinear, config.RopeLlama3, config.RopeYarn}
	m := &NanoChat{
		Dense:    config.ParseDense(top, o, d, config.RopeOptions{Types: types}, "relu2"),
		LogitCap: o.Limit("final_logit_softcapping", 15),
	}
	return config.Done(m, o)
}

func (m *NanoChat) Facts() config.Facts { return m.FactsAs("nanochat", m.Rope, m.Table()) }

func (m *NanoChat) Table() table.Table { return m.Decoder().Table("nanochat") }

func (m *NanoChat) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:      decoder.Norm{Unweighed: true},
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", AfterRope: true},
		Plain:     decoder.Plain{Up: "fc1", Down: "fc2"},
		LogitCap:  m.LogitCap,
	}}
}
