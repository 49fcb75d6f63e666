// Package gemma3 runs model type "gemma3": the text model, alone or from a multimodal checkpoint. Attention and MLP are
// normalized before and after, with norm weights stored as offsets from 1. Layers with a sliding window and a rope of
// their own alternate with full-attention layers.
//
// Reference: transformers 5.23, models/gemma3/modeling_gemma3.py.
package gemma3

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("gemma3", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		return build(t, config.(*arch.Gemma3), w)
	})
}

type model struct {
	embed    *nn.Embedding
	layers   []layer
	norm     *nn.RMSNorm
	head     *nn.Linear // nil if embeddings are tied
	logitCap float64
}

type layer struct {
	attentionNorm     *nn.RMSNorm
	attention         *nn.NormedAttention
	postAttentionNorm *nn.RMSNorm
	mlpNorm           *nn.RMSNorm
	mlp               *nn.MLP
	postMLPNorm       *nn.RMSNorm
}

func build(t *mlx.Thread, c *arch.Gemma3, w *nn.Weights) *model {
	norm := func(name string) *nn.RMSNorm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne() }
	m := &model{
		embed:    nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden).Scaled(math.Sqrt(float64(c.Hidden))),
		norm:     norm(c.Prefix + "norm"),
		logitCap: c.LogitCap,
	}
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	scale := 1 / math.Sqrt(c.QueryScalar)
	for i := range c.Layers {
		rope, window := full, 0
		if c.Sliding[i] {
			rope, window = sliding, c.Window
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.layers = append(m.layers, layer{
			attentionNorm:     norm(p + "input_layernorm"),
			attention:         nn.NewNormedAttention(w, p+"self_attn", i, c.Common, rope, window).PlusOne().Scaled(scale),
			postAttentionNorm: norm(p + "post_attention_layernorm"),
			mlpNorm:           norm(p + "pre_feedforward_layernorm"),
			mlp:               nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, false, mlx.GELUTanhActivation),
			postMLPNorm:       norm(p + "post_feedforward_layernorm"),
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
		h, y = l.mlp.AddApply(l.mlpNorm, h, l.postAttentionNorm.Apply(y))
		y = l.postMLPNorm.Apply(y)
	}
	_, x := m.norm.AddApply(h, y)
	return x
}

// Head implements models.Model.
func (m *model) Head(hidden *mlx.Array) *mlx.Array {
	var logits *mlx.Array
	if m.head == nil {
		logits = m.embed.Project(hidden)
	} else {
		logits = m.head.Apply(hidden)
	}
	if m.logitCap > 0 {
		logits = mlx.Softcap(logits, m.logitCap)
	}
	return logits
}
