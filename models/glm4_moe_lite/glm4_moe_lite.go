// Package glm4_moe_lite runs model type "glm4_moe_lite" (GLM-4.7-Flash): decoder layers of multi-head latent attention
// and of experts that a sigmoid router chooses, with shared experts for all tokens.
//
// Reference: transformers 5.23, models/glm4_moe_lite/modeling_glm4_moe_lite.py.
package glm4_moe_lite

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("glm4_moe_lite", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		return build(t, config.(*arch.Glm4MoeLite), w)
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
	attention     *latentAttention
	mlpNorm       *nn.RMSNorm
	mlp           interface{ Apply(x *mlx.Array) *mlx.Array }
}

// sparse is a layer's router and experts.
type sparse struct {
	router  *router
	experts *nn.Experts
	shared  *nn.MLP // nil if there is none
}

func build(t *mlx.Thread, c *arch.Glm4MoeLite, w *nn.Weights) *model {
	m := &model{
		embed: nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden),
		norm:  nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps),
	}
	rope := nn.NewRope(t, w, c.Rope, c.RopeDim)
	if c.Interleaved {
		rope.Neighbours()
	}
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		l := layer{
			attentionNorm: nn.NewRMSNorm(w, p+"input_layernorm", c.Hidden, c.NormEps),
			attention:     newLatentAttention(w, p+"self_attn", i, c, rope),
			mlpNorm:       nn.NewRMSNorm(w, p+"post_attention_layernorm", c.Hidden, c.NormEps),
		}
		if c.Sparse[i] {
			l.mlp = newSparse(w, p+"mlp", c)
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

func newSparse(w *nn.Weights, name string, c *arch.Glm4MoeLite) *sparse {
	s := &sparse{
		router:  newRouter(w, name+".gate", c),
		experts: nn.NewExperts(w, name+".experts", c.Experts, c.Hidden),
	}
	if c.SharedExperts > 0 {
		width := c.SharedExperts * c.Experts.Intermediate
		s.shared = nn.NewMLP(w, name+".shared_experts", c.Hidden, width, false, mlx.SiLUActivation)
	}
	return s
}

// Layers implements models.Model.
func (m *model) Layers() []cache.Kind {
	kinds := make([]cache.Kind, len(m.layers))
	for i := range kinds {
		kinds[i] = cache.Full
	}
	return kinds
}

// Embed implements models.Model.
func (m *model) Embed(tokens *mlx.Array) *mlx.Array { return m.embed.Lookup(tokens) }

// Forward implements models.Model.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	h := m.Embed(b.Tokens)
	var x, y *mlx.Array // a block's input, and its output, not yet added to h
	for i := range m.layers {
		l := &m.layers[i]
		if i == len(m.layers)-1 {
			b = b.Ending()
		}
		h, x = l.attentionNorm.AddApply(h, y)
		h, y = b.Asked(h), l.attention.apply(b, x)
		h, x = l.mlpNorm.AddApply(h, y)
		y = l.mlp.Apply(x)
	}
	_, x = m.norm.AddApply(h, y)
	return x
}

// Apply routes rows [T, hidden] through their experts.
func (s *sparse) Apply(x *mlx.Array) *mlx.Array {
	weights, chosen := s.router.route(x)
	var shared nn.Shared
	if s.shared != nil {
		shared.X = s.shared.Apply(x)
	}
	return s.experts.Apply(x, weights, chosen, shared)
}

// Head implements models.Model.
func (m *model) Head(hidden *mlx.Array) *mlx.Array {
	if m.head == nil {
		return m.embed.Project(hidden)
	}
	return m.head.Apply(hidden)
}
