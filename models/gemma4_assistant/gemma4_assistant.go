// Package gemma4_assistant runs model type "gemma4_assistant", a draft for a gemma4 model: a few layers without a KV
// cache of their own, which read the keys and values of the target's last layers.
//
// Reference: transformers 5.23, models/gemma4_assistant/modeling_gemma4_assistant.py, and
// SinglePositionMultiTokenCandidateGenerator in generation/candidate_generator.py. All steps of a round use one
// position, that of the token that the target chose last. With a sliding window the reference lets a draft see one or
// two positions more than the target's next token will see; here it sees the same ones.
package gemma4_assistant

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.RegisterDraft("gemma4_assistant", build) }

type model struct {
	dtype   mlx.DType
	in      *nn.Linear // of the token's vector concatenated with the hidden state
	layers  []layer
	norm    *nn.Norm
	head    *nn.Embedding
	ordered *ordered // nil if the head scores all tokens
	out     *nn.Linear
}

type layer struct {
	attentionNorm     *nn.Norm
	attention         *nn.StoredAttention
	postAttentionNorm *nn.Norm
	mlpNorm           *nn.Norm
	mlp               *nn.MLP
	postMLPNorm       *nn.Norm
	scalar            *mlx.Array // [1]: multiplies the layer's output
}

func build(t *mlx.Thread, config *types.Gemma4Assistant, target *types.Gemma4, w *nn.Weights) *model {
	c := config.Text
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := &model{
		dtype: w.DType,
		in:    nn.NewLinear(w, "pre_projection", c.Hidden, 2*config.Backbone, false),
		norm:  norm(c.Prefix + "norm"),
		head:  nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden),
		out:   nn.NewLinear(w, "post_projection", config.Backbone, c.Hidden, false),
	}
	full := nn.NewRope(t, w, c.Rope, c.Layer[c.Layers-1].HeadDim) // the last layer is always a full one
	sliding := nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, l := range c.Layer {
		options := nn.AttendOptions{Scale: 1, Rope: full}
		if l.Sliding {
			options.Rope, options.Window = sliding, c.Window
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.layers = append(m.layers, layer{
			attentionNorm:     norm(p + "input_layernorm"),
			attention:         nn.NewStoredAttention(w, p+"self_attn", target.LastKV(l.Sliding), c.Common, l.HeadDim, options),
			postAttentionNorm: norm(p + "post_attention_layernorm"),
			mlpNorm:           norm(p + "pre_feedforward_layernorm"),
			mlp:               nn.NewMLP(w, p+"mlp", c.Hidden, l.Intermediate, false, mlx.GELUTanhActivation),
			postMLPNorm:       norm(p + "post_feedforward_layernorm"),
			scalar:            w.Take(p+"layer_scalar", 1),
		})
	}
	if !c.TieEmbeddings {
		m.head = nn.NewEmbedding(w, "lm_head", c.Vocab, c.Hidden) // embed_tokens is then unused
	}
	if config.Centroids > 0 {
		m.ordered = newOrdered(w, config)
	}
	return m
}

// Layers implements models.Draft.
func (m *model) Layers() []cache.Kind { return nil }

// Step implements models.Draft. Each segment must have one row.
func (m *model) Step(b *models.DraftBatch) (hidden, logits *mlx.Array) {
	at := anchored(b)
	h := m.in.Apply(mlx.AsType(mlx.Concatenate(1, b.Vectors, b.Hidden), m.dtype))
	for i := range m.layers {
		l := &m.layers[i]
		y := l.attention.Apply(at, l.attentionNorm, h)
		h, y = l.mlp.AddApply(l.mlpNorm, h, l.postAttentionNorm.Apply(y))
		h = mlx.Multiply(mlx.Add(h, l.postMLPNorm.Apply(y)), l.scalar)
	}
	h = m.norm.Apply(b.Wanted(h))
	hidden = mlx.AsType(m.out.Apply(h), b.Hidden.DType())
	if m.ordered != nil {
		return hidden, m.ordered.logits(h, m.head)
	}
	return hidden, m.head.Project(h)
}

// anchored returns the batch with the target's sequences, each row at the target's next position.
func anchored(b *models.DraftBatch) *nn.Batch {
	at := &nn.Batch{Tokens: b.Tokens}
	var positions []int32
	for i, s := range b.Segments {
		if s.Len != 1 {
			panic(&mlx.Error{Message: fmt.Sprintf("gemma4_assistant: a sequence has %d rows: must have one", s.Len)})
		}
		s.Seq = b.Target[i]
		s.Pos = s.Seq.Offset()
		at.Segments = append(at.Segments, s)
		positions = append(positions, int32(s.Pos))
	}
	at.Positions = mlx.FromSlice(b.Hidden.Thread(), positions)
	return at
}
