package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// GPTBigCode is the configuration of model type "gpt_bigcode" (SantaCoder, StarCoder): [GPT2] whose query heads read
// one key and value head. Matrices are not transposed. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type GPTBigCode struct {
	config.Dense
	Unscaled bool // the scores are not divided by the root of the head size
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gpt_bigcode",
		Plain:         true,
		Architectures: []string{"GPTBigCodeForCausalLM"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		Docs: arch.Docs{Variants: "StarCoder: learned positions, one key and value head or all, fused projections"},
	}, ParseGPTBigCode)
}

// ParseGPTBigCode parses the config.json of a gpt_bigcode model.
func ParseGPTBigCode(data []byte) (*GPTBigCode, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	end := []int32{50256}
	d, o := parseGPT(top, o, "gelu_pytorch_tanh", config.Defaults{
		Class: "GPTBigCodeForCausalLM", Context: 1024, NormEps: 1e-5, Tied: true, BOS: end, EOS: end,
	})
	m := &GPTBigCode{Dense: d, Unscaled: !o.Bool("scale_attn_weights", true)}
	m.AttentionBias, m.OutputBias = true, true
	o.MustBe(false, "add_cross_attention")
	// transformers saves the number of heads, and does not read it.
	if m.KVHeads = m.Heads; o.Bool("multi_query", true) {
		m.KVHeads = 1
	}
	return config.Done(m, o)
}

// parseGPT reads the keys that have the names of GPT-2.
func parseGPT(top, o config.Object, activation string, d config.Defaults) (config.Dense, config.Object) {
	o = o.Renamed("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	m := config.Dense{
		Common:     config.ParseCommon(top, o, d),
		Activation: o.PlainActivation("activation_function", activation),
		Rope:       config.Rope{Type: config.RopeDefault, Theta: config.DefaultTheta, PartialFactor: 1},
	}
	m.Intermediate = o.Integer("intermediate_size", 4*m.Hidden, 1, config.MaxWidth)
	m.Prefix, m.MLPBias = "transformer.", true
	if m.QueryWidth() != int64(m.Hidden) {
		o.Fail("head_dim", "be absent")
	}
	return m, o
}

func (m *GPTBigCode) Facts() config.Facts { return m.FactsAs("gpt_bigcode", m.Rope, m.Table()) }

func (m *GPTBigCode) Table() table.Table {
	t := m.Decoder().Table("gpt_bigcode")
	t.PublishedAs(table.AsPublished, gpt2Names, m.GroupedQKV())
	t.Drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

func (m *GPTBigCode) Decoder() config.Decoder {
	d := decoder.Description{
		Norm:       decoder.Norm{LayerNorm: true, Bias: true},
		RopeLayers: make([]bool, m.Layers),
		Plain:      decoder.UpDown,
		Positions:  m.Context,
	}
	if m.Unscaled {
		d.AttentionScale = 1
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}
