// Package qwen3 runs model type "qwen3": pre-norm decoder layers of grouped-query attention with normalized queries and
// keys, and a SwiGLU MLP. Some layers may have a sliding window.
//
// Reference: transformers 5.23, models/qwen3/modeling_qwen3.py.
package qwen3

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("qwen3", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		return build(t, config.(*arch.Qwen3), w)
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
	mlp           *nn.MLP
}

func build(t *mlx.Thread, c *arch.Qwen3, w *nn.Weights) *model {
	m := &model{
		embed: nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden),
		norm:  nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps),
	}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		window := 0
		if c.Sliding[i] {
			window = c.Window
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.layers = append(m.layers, layer{
			attentionNorm: nn.NewRMSNorm(w, p+"input_layernorm", c.Hidden, c.NormEps),
			attention:     nn.NewNormedAttention(w, p+"self_attn", i, c.Common, rope, window),
			mlpNorm:       nn.NewRMSNorm(w, p+"post_attention_layernorm", c.Hidden, c.NormEps),
			mlp:           nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, false, mlx.SiLUActivation),
		})
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

// Head implements models.Model.
func (m *model) Head(hidden *mlx.Array) *mlx.Array {
	if m.head == nil {
		return m.embed.Project(hidden)
	}
	return m.head.Apply(hidden)
}
