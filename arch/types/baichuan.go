package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Baichuan is the configuration of model type "baichuan" (Baichuan 7B, Baichuan 2 7B): Llama with queries, keys and
// values in one tensor. Absent keys have the defaults of its publisher's configuration_baichuan.py; sizes are required.
// The models of 13B have ALiBi instead of rope.
type Baichuan struct {
	config.Dense
	// UnitHead: the rows of the head are divided by their lengths. Baichuan 2 does that, whose class is spelled with a
	// small c.
	UnitHead bool
}

const baichuan2Class = "BaichuanForCausalLM"

func init() {
	arch.Register(arch.Arch{
		ModelType:     "baichuan",
		Architectures: []string{"BaiChuanForCausalLM", baichuan2Class},
		Docs: arch.Docs{
			Variants: "Baichuan 7B and Baichuan 2 7B: fused projections, normalized head (2); not 13B, which has ALiBi",
			Code:     equals("llama"),
		},
	}, ParseBaichuan)
}

// ParseBaichuan parses the config.json of a baichuan model. Those of models with ALiBi have no max_position_embeddings.
func ParseBaichuan(data []byte) (*Baichuan, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	if !o.Has("max_position_embeddings") {
		return nil, config.Errorf("max_position_embeddings: missing, as in the models of 13B, whose attention has " +
			"ALiBi instead of rope: that is not supported")
	}
	m := &Baichuan{Dense: config.ParseDense(top, o, config.Defaults{
		Class: baichuan2Class, Context: 4096, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2},
	}, config.RopeOptions{}, config.SiLU...)}
	m.UnitHead = m.Architecture == baichuan2Class
	m.AttentionBias, m.OutputBias = false, false
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be absent")
	}
	return config.Done(m, o)
}

func (m *Baichuan) Facts() config.Facts { return m.FactsAs("baichuan", m.Rope, m.Table()) }

func (m *Baichuan) Table() table.Table {
	t := m.Decoder().Table("baichuan")
	t.PublishedAs(table.AsPublished, []string{"q_proj.", "W_pack.", "k_proj.", "W_pack.", "v_proj.", "W_pack."},
		m.JoinedQKV())
	return t
}

// Decoder implements [arch.Described].
func (m *Baichuan) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}
