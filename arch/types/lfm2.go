package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Lfm2 is the configuration of model type "lfm2": layers of attention or a gated short convolution, each with a gated
// feed-forward block. Absent keys have the defaults of transformers 5.23; sizes are required.
type Lfm2 struct {
	config.Dense
	Full     []bool // by layer: attention, else a convolution
	Taps     int    // size of the convolutions
	ConvBias bool   // biases of the convolutions, and of the projections around them
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "lfm2",
		Aliases:       []string{"lfm2_vl"},
		Towers:        []string{"lfm2_vl"},
		Architectures: []string{"Lfm2ForCausalLM", "Lfm2VlForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufLfm2},
		Published:     table.Published{Projections: table.Fused, Apart: true},
		Variants: map[string]table.Published{
			"lfm2_vl": {},
		},
		Idle: []arch.Idle{
			{Why: "another key of the type says it", Keys: []string{"intermediate_size"}},
		},
		Docs: arch.Docs{
			Variants: "short convolutions with some layers of attention; biases, tied embeddings; LFM2-VL",
		},
	}, ParseLfm2)
}

// ParseLfm2 parses the config.json of an lfm2 model.
func ParseLfm2(data []byte) (*Lfm2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("intermediate_size", "block_ff_dim")
	m := parseLfm2(top, o, "Lfm2ForCausalLM")
	m.Intermediate = o.Size("intermediate_size", 0, config.MaxWidth)
	if o.Bool("block_auto_adjust_ff_dim", true) {
		width, of := 2*m.Intermediate/3, o.Integer("block_multiple_of", 256, 1, config.MaxWidth)
		if !o.IsNull("block_ffn_dim_multiplier") {
			factor := o.Above("block_ffn_dim_multiplier", 1, 0)
			if factor > 64 {
				o.Fail("block_ffn_dim_multiplier", "be <= 64")
				factor = 1
			}
			width = of * ((int(factor*float64(width)) + of - 1) / of)
		}
		m.Intermediate = max(width, 1)
	}
	return config.Done(&m, o)
}

// parseLfm2 reads the keys that models with and without experts share.
func parseLfm2(top, o config.Object, class string) Lfm2 {
	o = o.Renamed("rms_norm_eps", "norm_eps")
	for _, in := range []config.Object{top, o} {
		if in.Has("tie_embedding") {
			in.Set("tie_word_embeddings", in.Bool("tie_embedding", true))
		}
	}
	m := Lfm2{
		Dense: config.Dense{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: class, KVHeads: 8, Context: 128000, NormEps: 1e-5, Tied: true, BOS: []int32{1}, EOS: []int32{2},
			}),
			Activation: config.SiLU[0],
		},
		Taps:     o.Integer("conv_L_cache", 3, 2, config.MaxTaps),
		ConvBias: o.Bool("conv_bias", false),
	}
	m.NormName = "embedding_norm"
	m.AttentionBias, m.OutputBias = false, false
	m.ReadRope(o, config.RopeOptions{Theta: 1e6})
	m.Full = make([]bool, m.Layers)
	kinds := o.Words("layer_types", m.Layers, config.ConvLayer, config.FullAttention)
	attention := o.Integers("full_attn_idxs", config.MaxLayers, 0, m.Layers-1)
	for i := range m.Full {
		switch {
		case kinds != nil:
			m.Full[i] = kinds[i] == config.FullAttention
		default:
			m.Full[i] = !o.Has("full_attn_idxs") || slices.Contains(attention, i)
		}
	}
	return m
}

// State implements [arch.Model]. A convolution keeps its last inputs.
func (m *Lfm2) State() []config.LayerState {
	return m.HybridStates(m.Full, config.LayerState{Fixed: int64(m.Taps-1) * int64(m.Hidden)})
}

func (m *Lfm2) Facts() config.Facts { return m.FactsAs("lfm2", m.Rope, m.Table()) }

func (m *Lfm2) Table() table.Table {
	return m.table("lfm2", m.Decoder())
}

// Decoder implements [arch.Described].
func (m *Lfm2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Norms:     decoder.Norms{Mixer: "operator_norm", Network: "ffn_norm"},
		HeadNorms: decoder.HeadNorms{Q: "q_layernorm", K: "k_layernorm"},
		Network:   "feed_forward",
	}}
}

// table makes the tensor table. network adds a layer's feed-forward block.
func (m *Lfm2) table(modelType string, d config.Decoder) table.Table {
	t := d.OwnTable(modelType, config.Own{Mixer: func(t *table.Table, layer string, i int) bool {
		if m.Full[i] {
			return false
		}
		config.AddShortConv(t, layer+"conv", m.Taps, int64(m.Hidden), m.ConvBias)
		return true
	}})
	t.Publishes(table.Naming{Layout: table.Fused, Names: []string{
		".self_attn.o_proj.", ".self_attn.out_proj.", ".feed_forward.gate_proj.", ".feed_forward.w1.",
		".feed_forward.up_proj.", ".feed_forward.w3.", ".feed_forward.down_proj.", ".feed_forward.w2.",
		".feed_forward.gate.e_score_correction_bias", ".feed_forward.expert_bias",
	}})
	config.DropTowers(&t, modelType)
	return t
}

// The mappings of lfm2 and lfm2_moe. llama.cpp takes the weights of experts to sum to 1, and does not scale them.
var (
	ggufLfm2    = lfm2Of("lfm2", "lfm2", "Lfm2ForCausalLM")
	ggufLfm2Moe = lfm2Of("lfm2moe", "lfm2_moe", "Lfm2MoeForCausalLM",
		gguf.Key{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
		gguf.Key{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		gguf.Key{Key: "leading_dense_block_count", To: "num_dense_layers"})
)

func lfm2Of(architecture, modelType, class string, more ...gguf.Key) gguf.Map {
	return gguf.Map{
		Architecture: architecture,
		Limits:       gguf.Limits{Square: true, Biases: gguf.NoBiases},
		Config: map[string]any{
			"model_type": modelType, "architectures": []string{class}, "block_auto_adjust_ff_dim": false,
		},
		Keys: gguf.Keys(append(more, gguf.Key{Key: "shortconv.l_cache", To: "conv_L_cache", Field: "Taps"})...),
		Tensors: slices.Concat([]gguf.Tensor{
			{Name: gguf.Embedding, To: "model.embed_tokens.weight"}, {Name: gguf.Head, To: "lm_head.weight"},
			{Name: "token_embd_norm.weight", To: "model.embedding_norm.weight"},
			{Name: "output_norm.weight", To: "model.embedding_norm.weight"}, // of newer versions
		}, gguf.Attention, gguf.FeedForward, gguf.Linears(gguf.Op{}, "shortconv.conv", "conv.conv",
			"shortconv.in_proj", "conv.in_proj", "shortconv.out_proj", "conv.out_proj"), gguf.Names(gguf.Op{},
			"attn_q_norm.weight", "self_attn.q_layernorm.weight", "attn_k_norm.weight", "self_attn.k_layernorm.weight",
			"attn_norm.weight", "operator_norm.weight", "ffn_norm.weight", "ffn_norm.weight")),
		Adjust: func(c map[string]any, f gguf.File) error {
			if v, ok := f.Value(architecture + ".attention.sliding_window"); ok && v != json.Number("0") {
				return fmt.Errorf("%s.attention.sliding_window = %v: %w: %s with a window", architecture, gguf.Shown(v),
					arch.ErrUnknownArchitecture, modelType)
			}
			full, err := gguf.SetFull(c, f)
			kinds := make([]string, len(full))
			for i := range kinds {
				if kinds[i] = config.ConvLayer; full[i] {
					kinds[i] = config.FullAttention
				}
			}
			c["layer_types"] = kinds
			c["conv_bias"] = gguf.AnyLayer(c, f, "shortconv.conv.bias")
			c["use_expert_bias"] = gguf.AnyLayer(c, f, "exp_probs_b.bias")
			return err
		},
		Also: alsoLfm2,
		Refuse: func(m gguf.Model) string {
			q, _ := lfm2Model(m)
			x, ok := gguf.Field[config.Mixture](m, "Mixture")
			switch {
			case q.ConvBias:
				return "has no biases of convolutions"
			case ok && !x.Router.Correction:
				return "has a correction of the router's scores"
			}
			return ""
		},
	}
}

func lfm2Model(m gguf.Model) (Lfm2, bool) {
	switch q := m.(type) {
	case *Lfm2:
		return *q, true
	case *Lfm2Moe:
		return q.Lfm2, true
	}
	return Lfm2{}, false
}

func alsoLfm2(m gguf.Model) []gguf.Pair {
	q, ok := lfm2Model(m)
	if !ok {
		return nil
	}
	return []gguf.Pair{gguf.KVHeads(q.KVHeads, q.Full)}
}
