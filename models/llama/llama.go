// Package llama runs model types "llama" (Llama 2, 3, 3.x and derived models) and "mistral": pre-norm decoder layers of
// grouped-query attention with rope, which in Mistral has a sliding window, and a SwiGLU MLP.
//
// Reference: transformers 5.23, models/llama/modeling_llama.py, models/mistral/modeling_mistral.py.
package llama

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
	models.Register("llama", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		return build(t, config.(*arch.Llama), w)
	})
}

type model struct {
	embed  *nn.Embedding
	layers []layer
	norm   *nn.RMSNorm
	head   *nn.Linear // nil if embeddings are tied
}

type layer struct {
	index         int
	attentionNorm *nn.RMSNorm
	q, k, v, o    *nn.Linear
	options       nn.AttendOptions

	mlpNorm *nn.RMSNorm
	mlp     *nn.MLP
}

func build(t *mlx.Thread, c *arch.Llama, w *nn.Weights) *model {
	m := &model{
		embed: nn.NewEmbedding(w, "model.embed_tokens", c.Vocab, c.Hidden),
		norm:  nn.NewRMSNorm(w, "model.norm", c.Hidden, c.NormEps),
	}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		m.layers = append(m.layers, layer{
			index:         i,
			attentionNorm: nn.NewRMSNorm(w, p+"input_layernorm", c.Hidden, c.NormEps),
			q:             nn.NewLinear(w, p+"self_attn.q_proj", c.Heads*c.HeadDim, c.Hidden, c.AttentionBias).Split(c.Heads),
			k: nn.NewLinear(w, p+"self_attn.k_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias).
				Split(c.KVHeads),
			v: nn.NewLinear(w, p+"self_attn.v_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias).
				Split(c.KVHeads),
			o:       nn.NewLinear(w, p+"self_attn.o_proj", c.Hidden, c.Heads*c.HeadDim, c.AttentionBias).Join(),
			options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Window: c.Window, Rope: rope},
			mlpNorm: nn.NewRMSNorm(w, p+"post_attention_layernorm", c.Hidden, c.NormEps),
			mlp:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
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
		kinds[i] = m.layers[i].options.Kind()
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
		h, y = l.attention(b, h, y)
		h, y = l.mlp.AddApply(l.mlpNorm, h, y)
	}
	_, x := m.norm.AddApply(h, y)
	return x
}

// attention returns h+y and the attention of that sum, for the rows that b.Asked selects.
func (l *layer) attention(b *nn.Batch, h, y *mlx.Array) (sum, out *mlx.Array) {
	h, qkv := nn.NormedQueries(b, l.attentionNorm, h, y, l.q, l.k, l.v)
	q, k := l.options.Rope.Apply(b, qkv[0], qkv[1])
	return h, l.o.Apply(nn.Attend(b, l.index, q, k, qkv[2], l.options))
}

// Head implements models.Model.
func (m *model) Head(hidden *mlx.Array) *mlx.Array {
	if m.head == nil {
		return m.embed.Project(hidden)
	}
	return m.head.Apply(hidden)
}
