package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Cohere is the configuration of model type "cohere" (Command R, Aya): attention and MLP in parallel, after one
// LayerNorm without bias; interleaved rope; scaled logits. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type Cohere struct {
	config.Dense
	LogitScale float64
	QKNorm     bool // LayerNorms of query and key heads, each head with weights of its own
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "cohere",
		Plain:         true,
		Architectures: []string{"CohereForCausalLM"},
		GGUF:          []gguf.Map{ggufCohere},
		Docs: arch.Docs{
			Variants: "parallel blocks, norms of queries and keys (Command R+), biases, untied embeddings",
		},
	}, ParseCohere)
}

// ParseCohere parses the config.json of a cohere model.
func ParseCohere(data []byte) (*Cohere, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Cohere{
		Dense:      parseCohere(top, o, "CohereForCausalLM", config.RopeOptions{Theta: 5e5}),
		LogitScale: o.Above("logit_scale", 0.0625, 0),
		QKNorm:     o.Bool("use_qk_norm", false),
	}
	return config.Done(m, o)
}

// parseCohere reads the keys that cohere and cohere2 share.
func parseCohere(top, o config.Object, class string, r config.RopeOptions) config.Dense {
	m := config.ParseDense(top, o, config.Defaults{
		Class: class, Context: 8192, NormEps: 1e-5, Tied: true, BOS: []int32{5}, EOS: []int32{255001},
	}, r, config.SiLU...)
	m.NormEps = o.Above("layer_norm_eps", 1e-5, 0)
	return m
}

func (m *Cohere) Facts() config.Facts { return m.FactsAs("cohere", m.Rope, m.Table()) }

func (m *Cohere) Table() table.Table { return m.Decoder().Table("cohere") }

func (m *Cohere) Decoder() config.Decoder {
	d := decoder.Description{
		Norm:        decoder.Norm{LayerNorm: true},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		LogitScale:  m.LogitScale,
	}
	if m.QKNorm {
		d.HeadNorms = decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.OwnHead}
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}

// ggufCohere and ggufCohere2 are the mappings of cohere and cohere2.
var (
	ggufCohere  = cohereOf("command-r", "cohere", "CohereForCausalLM", gguf.LogitScale)
	ggufCohere2 = cohereOf("cohere2", "cohere2", "Cohere2ForCausalLM", gguf.LogitScale,
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"})
)

func cohereOf(architecture, modelType, class string, more ...gguf.Key) gguf.Map {
	g := gguf.Plain(architecture, modelType, class)
	g.Keys = append(gguf.EpsKeys("layer_norm_eps"), more...)
	g.Tensors = append(slices.Clone(g.Tensors), gguf.Names(gguf.Op{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")...)
	g.Limits = gguf.Limits{Square: true, Tied: true}
	g.Adjust = func(c map[string]any, f gguf.File) error {
		_, c["use_qk_norm"] = f.Shape("blk.0.attn_q_norm.weight")
		gguf.SetSliding(c, architecture, f)
		return gguf.SetBiases(c, f)
	}
	return g
}
