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

// StableLM is the configuration of model type "stablelm" (StableLM 2, 3B and 12B): a decoder with LayerNorms and a
// partial rope, whose MLP may read the same norm as attention. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type StableLM struct {
	config.Dense
	QKNorm   bool // LayerNorms of query and key heads, each head with weights of its own
	Parallel bool // attention and MLP read the same norm
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "stablelm",
		Plain:         true,
		Architectures: []string{"StableLmForCausalLM"},
		GGUF:          []gguf.Map{ggufStableLM},
		Docs:          arch.Docs{Variants: "partial rope, parallel blocks and norms of heads (12B), biases, tied embeddings"},
	}, ParseStableLM)
}

// ParseStableLM parses the config.json of a stablelm model.
func ParseStableLM(data []byte) (*StableLM, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "StableLmForCausalLM", Context: 4096, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{0}}
	m := &StableLM{
		Dense:    config.ParseDense(top, o, d, config.RopeOptions{Partial: 0.25}, config.SiLU...),
		QKNorm:   o.Bool("qk_layernorm", false),
		Parallel: o.Bool("use_parallel_residual", false),
	}
	m.NormEps = o.Above("layer_norm_eps", 1e-5, 0)
	m.AttentionBias, m.OutputBias = o.Bool("use_qkv_bias", false), false
	return config.Done(m, o)
}

func (m *StableLM) Facts() config.Facts { return m.FactsAs("stablelm", m.Rope, m.Table()) }

func (m *StableLM) Table() table.Table {
	t := m.Decoder().Table("stablelm")
	if m.QKNorm {
		for i := range t.Specs {
			eachHead(&t.Specs[i])
		}
	}
	return t
}

// eachHead says of a norm with weights for each head that checkpoints have these one by one.
func eachHead(s *table.Spec) {
	if len(s.Shape) != 2 || !strings.HasSuffix(s.Name, "_layernorm.weight") {
		return
	}
	name := strings.TrimSuffix(s.Name, ".weight")
	s.Layout, s.Group = table.AllHeads, name
	s.Forms = []table.Form{{
		Layout: table.EachHead, Make: table.Stack, Count: s.Shape[0], Names: []string{name + ".norms.*.weight"},
		Shapes: [][]int64{s.Shape[1:]},
	}}
}

func (m *StableLM) Decoder() config.Decoder {
	d := decoder.Description{Norm: decoder.Norm{LayerNorm: true, Bias: true}, Parallel: m.Parallel}
	if m.QKNorm {
		d.HeadNorms = decoder.HeadNorms{Q: "q_layernorm", K: "k_layernorm", Over: decoder.OwnHead}
	}
	if m.Parallel {
		d.Norms = decoder.BeforeShared
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}

// ggufStableLM is the mapping of stablelm.
var ggufStableLM = gguf.Map{
	Architecture: "stablelm",
	Limits:       gguf.Limits{Square: true, OwnHead: true},
	Config:       map[string]any{"model_type": "stablelm", "architectures": []string{"StableLmForCausalLM"}},
	Keys: append(gguf.EpsKeys("layer_norm_eps"),
		gguf.Key{Key: "use_parallel_residual", To: "use_parallel_residual", Field: "Parallel", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.LayerNorms(gguf.Op{}),
		gguf.Names(gguf.Op{},
			"attn_q_norm.weight", "self_attn.q_layernorm.weight", "attn_k_norm.weight", "self_attn.k_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["qk_layernorm"] = f.Shape("blk.0.attn_q_norm.weight")
		_, c["use_qkv_bias"] = f.Shape("blk.0.attn_q.bias")
		_, serial := f.Shape("blk.0.ffn_norm.weight")
		c["use_parallel_residual"] = !serial
		return gguf.SetPartial(c, "stablelm", f)
	},
}
