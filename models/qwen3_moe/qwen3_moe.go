// Package qwen3_moe runs model type "qwen3_moe": qwen3 with routed experts instead of the MLP in some or all layers.
//
// Reference: transformers 5.23, models/qwen3_moe/modeling_qwen3_moe.py.
package qwen3_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("qwen3_moe", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		return build(t, config.(*arch.Qwen3Moe), w)
	})
}

type model struct {
	embed  *nn.Embedding
	layers []layer
	norm   *nn.RMSNorm
	head   *nn.Linear // nil if embeddings are tied
}

type layer struct {
	attentionNorm *nn.RMSNorm
	attention     *nn.NormedAttention
	mlpNorm       *nn.RMSNorm
	mlp           network
}

// network is the feed-forward block of a layer. AddApply returns x+y and the output for the normalized sum.
type network interface {
	AddApply(n *nn.RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array)
}

// sparse is a layer's router and experts.
type sparse struct {
	router   *nn.Linear // [experts, hidden]
	experts  *nn.Experts
	perToken int
	sumToOne bool
}

func build(t *mlx.Thread, c *arch.Qwen3Moe, w *nn.Weights) *model {
	m := &model{
		embed: nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden),
		norm:  nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps),
	}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		l := layer{
			attentionNorm: nn.NewRMSNorm(w, p+"input_layernorm", c.Hidden, c.NormEps),
			attention:     nn.NewNormedAttention(w, p+"self_attn", i, c.Common, rope, c.Window),
			mlpNorm:       nn.NewRMSNorm(w, p+"post_attention_layernorm", c.Hidden, c.NormEps),
		}
		if c.Sparse[i] {
			l.mlp = &sparse{
				router:   nn.NewLinear(w, p+"mlp.gate", c.Experts.Count, c.Hidden, false),
				experts:  nn.NewExperts(w, p+"mlp.experts", c.Experts, c.Hidden),
				perToken: c.Experts.PerToken,
				sumToOne: c.Experts.NormTopK,
			}
		} else {
			l.mlp = nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, false, mlx.SiLUActivation)
		}
		m.layers = append(m.layers, l)
	}
	if !c.TieEmbeddings {
		m.head = nn.NewLinear(w, "lm_head", c.Vocab, c.Hidden, false)
	}
	return m
}

// Layers implements models.Model.
func (m *model) Layers() []cache.Kind {
	kinds := make([]cache.Kind, len(m.layers))
	for i := range kinds {
		kinds[i] = m.layers[i].attention.Kind()
	}
	return kinds
}

// Embed implements models.Model.
func (m *model) Embed(tokens *mlx.Array) *mlx.Array { return m.embed.Lookup(tokens) }

// Forward implements models.Model.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	h := m.Embed(b.Tokens)
	var y *mlx.Array // the previous block's output, not yet added to h
	for i := range m.layers {
		l := &m.layers[i]
		if i == len(m.layers)-1 {
			b = b.Ending()
		}
		h, y = l.attention.AddApply(b, l.attentionNorm, h, y)
		h, y = l.mlp.AddApply(l.mlpNorm, h, y)
	}
	_, x := m.norm.AddApply(h, y)
	return x
}

// AddApply routes rows [T, hidden] through their experts.
func (s *sparse) AddApply(n *nn.RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x, scores := nn.NormedLinearsKept(n, x, y, s.router)
	weights, chosen := nn.TopSoftmax(scores[0], s.perToken, s.sumToOne)
	return sum, s.experts.Apply(x, weights, chosen, nn.Shared{})
}

// Head implements models.Model.
func (m *model) Head(hidden *mlx.Array) *mlx.Array {
	if m.head == nil {
		return m.embed.Project(hidden)
	}
	return m.head.Apply(hidden)
}
