package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// GPTNeoX is the configuration of model type "gpt_neox" (Pythia, GPT-NeoX): LayerNorms, a rope that rotates a part of
// each head, and an MLP that reads the same input as attention. Queries, keys and values are published in one tensor,
// head by head. Absent keys have the defaults of transformers 5.23; sizes are required.
type GPTNeoX struct {
	config.Dense
	Parallel bool // the MLP reads the input of attention
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gpt_neox",
		Plain:         true,
		Architectures: []string{"GPTNeoXForCausalLM"},
		GGUF:          []gguf.Map{ggufGPTNeoX},
		Published:     table.Published{Projections: table.Fused},
		Idle: []arch.Idle{
			{Why: "heads have hidden_size / num_attention_heads channels, or the reference fails", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{Variants: "parallel or sequential blocks, partial rope, with or without biases"},
	}, ParseGPTNeoX)
}

// ParseGPTNeoX parses the config.json of a gpt_neox model.
func ParseGPTNeoX(data []byte) (*GPTNeoX, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("rope_theta", "rotary_emb_base", "partial_rotary_factor", "rotary_pct", "rms_norm_eps", "layer_norm_eps")
	d := config.Defaults{Class: "GPTNeoXForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{2}}
	m := &GPTNeoX{
		Dense:    parsePlain(top, o, d, config.RopeOptions{Partial: 0.25}, "gelu"),
		Parallel: o.Bool("use_parallel_residual", true),
	}
	m.AttentionBias = o.Bool("attention_bias", true)
	m.OutputBias, m.MLPBias, m.Prefix = m.AttentionBias, true, "gpt_neox."
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be absent")
	}
	if m.QueryWidth() != int64(m.Hidden) {
		o.Fail("head_dim", "be absent")
	}
	return config.Done(m, o)
}

// parsePlain is ParseDense for models with a plain MLP. activation is the default.
func parsePlain(top, o config.Object, d config.Defaults, r config.RopeOptions, activation string) config.Dense {
	m := config.Dense{
		Common:       config.ParseCommon(top, o, d),
		Intermediate: o.Size("intermediate_size", 0, config.MaxWidth),
		Activation:   o.PlainActivation("hidden_act", activation),
	}
	m.ReadRope(o, r)
	return m
}

func (m *GPTNeoX) Facts() config.Facts { return m.FactsAs("gpt_neox", m.Rope, m.Table()) }

// gptNeoXNames are the published names of a table's tensors.
var gptNeoXNames = []string{
	"gpt_neox.norm.", "gpt_neox.final_layer_norm.", "gpt_neox.embed_tokens.", "gpt_neox.embed_in.",
	"lm_head.", "embed_out.", "self_attn.q_proj.", "attention.query_key_value.", "self_attn.k_proj.",
	"attention.query_key_value.", "self_attn.v_proj.", "attention.query_key_value.", "self_attn.o_proj.",
	"attention.dense.", "mlp.up_proj.", "mlp.dense_h_to_4h.", "mlp.down_proj.", "mlp.dense_4h_to_h.",
}

func (m *GPTNeoX) Table() table.Table {
	t := m.Decoder().Table("gpt_neox")
	qkv := table.QKVByHead(int64(m.Heads), int64(m.HeadDim))
	t.Publishes(table.Naming{Layout: table.Fused, Names: gptNeoXNames, QKV: qkv})
	mlx := append([]string{"gpt_neox.layers.", "model.h.", "lm_head.", "model.embed_out."}, gptNeoXNames...)
	t.Publishes(table.Naming{Layout: table.Renamed, Names: underModel(mlx, m.Prefix), QKV: qkv})
	t.Drop("a mask that follows from positions", m.Prefix+"layers.*.attention.bias",
		m.Prefix+"layers.*.attention.masked_bias")
	t.Drop(table.InvFreq, m.Prefix+"layers.*.attention.rotary_emb.inv_freq")
	return t
}

func (m *GPTNeoX) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		Parallel: m.Parallel,
		Plain:    decoder.UpDown,
	}}
}

// ggufGPTNeoX is the mapping of gpt_neox. Its queries, keys and values are no longer in the order of heads.
var ggufGPTNeoX = gguf.Map{
	Architecture: "gptneox",
	Limits:       gguf.Limits{Biases: gguf.RequiredBiases, Square: true, OwnHead: true},
	Config:       map[string]any{"model_type": "gpt_neox", "architectures": []string{"GPTNeoXForCausalLM"}},
	Keys: append(gguf.EpsKeys("layer_norm_eps"),
		gguf.Key{Key: "use_parallel_residual", To: "use_parallel_residual", Field: "Parallel", Optional: true}),
	Tensors: slices.Concat([]gguf.Tensor{
		{Name: gguf.Embedding, To: "model.embed_in.weight"},
		{Name: "output_norm.weight", To: "model.final_layer_norm.weight"},
		{Name: "output_norm.bias", To: "model.final_layer_norm.bias"},
		{Name: gguf.Head, To: "model.embed_out.weight"},
	}, gguf.Under("model.h.*.", slices.Concat(
		gguf.Linears(headsOfParts, "attn_qkv", "attention.query_key_value"),
		gguf.Linears(gguf.Op{}, "attn_norm", "input_layernorm", "attn_output", "attention.dense",
			"ffn_norm", "post_attention_layernorm", "ffn_up", "mlp.dense_h_to_4h", "ffn_down", "mlp.dense_4h_to_h")))),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_qkv.bias")
		err := gguf.SetPartial(c, "gptneox", f)
		c["rotary_pct"] = c["partial_rotary_factor"]
		delete(c, "partial_rotary_factor")
		return err
	},
}

// headsOfParts undoes the order of queries, keys and values one after the other: it puts those of a head together.
var headsOfParts = gguf.Op{What: "the rows of each head together", Rows: func(m gguf.Model, rows int64) []int64 {
	d, ok := m.(interface{ Base() config.Common })
	if !ok {
		return nil
	}
	dim := max(rows/int64(3*d.Base().Heads), 1)
	order := make([]int64, rows)
	for i := range order {
		head, part, at := int64(i)/(3*dim), int64(i)/dim%3, int64(i)%dim
		order[i] = part*(rows/3) + head*dim + at
	}
	return order
}}
