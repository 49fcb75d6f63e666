package types

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// GPT2 is the configuration of model type "gpt2": LayerNorms, positions learned as vectors, and a plain MLP. Published
// matrices are transposed, with queries, keys and values in one. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type GPT2 struct {
	config.Dense
	Unscaled bool // the scores are not divided by the root of the head size
	ByLayer  bool // the scores of layer i, from 0, are divided by i + 1
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gpt2",
		Architectures: []string{"GPT2LMHeadModel"},
		Names: []string{
			"n_embd", "hidden_size",
			"n_positions", "max_position_embeddings",
			"n_head", "num_attention_heads",
			"n_layer", "num_hidden_layers",
		},
		GGUF:      []gguf.Map{ggufGPT2},
		Published: table.Published{Projections: table.Fused},
		Docs: arch.Docs{
			Variants: "learned positions, transposed and fused projections, scores scaled by layer or not at all",
		},
	}, ParseGPT2)
}

// ParseGPT2 parses the config.json of a gpt2 model.
func ParseGPT2(data []byte) (*GPT2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
		"max_position_embeddings", "n_positions", "rms_norm_eps", "layer_norm_epsilon", "intermediate_size", "n_inner")
	end := []int32{50256}
	m := &GPT2{
		Dense: config.Dense{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: "GPT2LMHeadModel", Context: 1024, NormEps: 1e-5, Tied: true, BOS: end, EOS: end,
			}),
			Activation: o.PlainActivation("activation_function", "gelu_new"),
			Rope:       config.Rope{Type: config.RopeDefault, Theta: config.DefaultTheta, PartialFactor: 1}, // not used
		},
		Unscaled: !o.Bool("scale_attn_weights", true),
		ByLayer:  o.Bool("scale_attn_by_inverse_layer_idx", false),
	}
	m.Intermediate = o.Integer("intermediate_size", 4*m.Hidden, 1, config.MaxWidth)
	m.Prefix, m.AttentionBias, m.OutputBias, m.MLPBias = "transformer.", true, true, true
	if o.Bool("add_cross_attention", false) {
		o.Fail("add_cross_attention", "be false: there is no encoder to attend to")
	}
	if m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be absent")
	}
	if m.QueryWidth() != int64(m.Hidden) {
		o.Fail("head_dim", "be absent")
	}
	return config.Done(m, o)
}

func (m *GPT2) Facts() config.Facts { return m.FactsAs("gpt2", m.Rope, m.Table()) }

// gpt2Names are the published names of a table's tensors.
var gpt2Names = []string{
	"transformer.norm.", "transformer.ln_f.", "embed_tokens.", "wte.", "embed_positions.", "wpe.", "layers.", "h.",
	"input_layernorm.", "ln_1.", "post_attention_layernorm.", "ln_2.", "mlp.up_proj.", "mlp.c_fc.",
	"mlp.down_proj.", "mlp.c_proj.", "self_attn.o_proj.", "attn.c_proj.", "self_attn.q_proj.", "attn.c_attn.",
	"self_attn.k_proj.", "attn.c_attn.", "self_attn.v_proj.", "attn.c_attn.",
}

func (m *GPT2) Table() table.Table {
	hidden := int64(m.Hidden)
	t := m.Decoder().Table("gpt2")
	t.Parts[0].Accept = []string{""}
	t.Publishes(table.Naming{Layout: table.Fused, Names: gpt2Names, Transposed: true, QKV: table.QKVInOrder(hidden)})
	t.Publishes(table.Naming{Layout: table.Renamed, Names: underModel(gpt2Names, m.Prefix), QKV: table.QKVInOrder(hidden)})
	t.Drop("a mask that follows from positions", m.Prefix+"h.*.attn.bias", m.Prefix+"h.*.attn.masked_bias")
	return t
}

// Decoder implements [arch.Described].
func (m *GPT2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norm:       decoder.Norm{LayerNorm: true, Bias: true},
		RopeLayers: make([]bool, m.Layers),
		Plain:      decoder.UpDown,
		Positions:  m.Context,
	}}
}

// underModel returns names with the prefix that mlx-lm writes them under, for a table with another prefix.
func underModel(names []string, prefix string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = name; i%2 == 1 {
			out[i] = strings.Replace(name, prefix, "model.", 1)
		}
	}
	return append(out, prefix, "model.")
}

// ggufGPT2 is the mapping of gpt2. Its matrices are no longer transposed.
var ggufGPT2 = gguf.Map{
	Architecture: "gpt2",
	Limits:       gguf.Limits{Biases: gguf.RequiredBiases, Square: true},
	Config:       map[string]any{"model_type": "gpt2", "architectures": []string{"GPT2LMHeadModel"}},
	Keys: []gguf.Key{
		{Key: "block_count", To: "n_layer", Field: "Layers"},
		{Key: "context_length", To: "n_positions", Field: "Context"},
		{Key: "embedding_length", To: "n_embd", Field: "Hidden"},
		{Key: "feed_forward_length", To: "n_inner", Field: "Intermediate", Optional: true},
		{Key: "attention.head_count", To: "n_head", Field: "Heads"},
		{Key: "attention.layer_norm_epsilon", To: "layer_norm_epsilon", Field: "NormEps"},
	},
	Tensors: slices.Concat([]gguf.Tensor{
		{Name: gguf.Embedding, To: "model.wte.weight"},
		{Name: "position_embd.weight", To: "model.wpe.weight"},
		{Name: "output_norm.weight", To: "model.ln_f.weight"},
		{Name: "output_norm.bias", To: "model.ln_f.bias"},
		{Name: gguf.Head, To: "lm_head.weight"},
	}, gguf.Under("model.h.*.", gguf.Linears(gguf.Op{},
		"attn_norm", "ln_1", "attn_qkv", "attn.c_attn", "attn_output", "attn.c_proj",
		"ffn_norm", "ln_2", "ffn_up", "mlp.c_fc", "ffn_down", "mlp.c_proj"))),
	Adjust: func(c map[string]any, f gguf.File) error {
		if shape, ok := f.Shape("blk.0.ffn_up.weight"); ok { // the converter always writes 4 times embedding_length
			c["n_inner"] = shape[0]
		}
		return nil
	},
}
