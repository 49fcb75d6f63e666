// Package deepseek_v4 runs model type "deepseek_v4": decoder layers of attention over a window and over compressed
// entries of the positions before it, and of experts. Several residual streams are mixed by hyper-connections.
//
// Its multi-token prediction head is not supported: it continues from the residual streams after the last layer, and
// drafts are given one hidden state of each row. Published files have it as mtp.0.*; transformers ignores it.
//
// Reference: transformers 5.23, models/deepseek_v4/modeling_deepseek_v4.py.
package deepseek_v4

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("deepseek_v4", build) }

// Model is a DeepSeek V4 decoder.
type Model struct {
	*nn.Decoder            // its ends
	spread      *mlx.Array // float32 [n, 1]: ones, by which each stream begins as the embedding
	layers      []layer
	head        *collapse
	hidden      int
}

// layer is a decoder layer.
type layer struct {
	mixerStreams, networkStreams *hyper
	mixerNorm, networkNorm       *nn.Norm
	mixer                        *attention
	network                      *mixture
}

// states is the number of caches of a layer.
const states = 3

func build(t *mlx.Thread, c *types.DeepseekV4, w *nn.Weights) *Model {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := &Model{
		Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())}),
		spread:  w.Constant(mlx.Ones(t, mlx.Float32, c.Streams.Count, 1)),
		head:    newCollapse(w, c.Prefix+"hc_head.hc_", c),
		hidden:  c.Hidden,
	}
	plain, compress := newRopes(t, w, c.Rope, c.RopeDim), newRopes(t, w, c.CompressRope, c.RopeDim)
	for i := range c.Layers {
		name, ropes := fmt.Sprintf("%slayers.%d.", c.Prefix, i), plain
		if c.Compression[i].Rate > 0 {
			ropes = compress
		}
		m.layers = append(m.layers, layer{
			mixerStreams:   newHyper(w, name+"attn_hc.", c),
			mixerNorm:      norm(name + "input_layernorm"),
			mixer:          newAttention(w, name+"self_attn", states*i, c, c.Compression[i], ropes),
			networkStreams: newHyper(w, name+"ffn_hc.", c),
			networkNorm:    norm(name + "post_attention_layernorm"),
			network:        newMixture(w, name+"mlp", c, c.Hash[i]),
		})
	}
	return m
}

// Forward implements [models.Model].
func (m *Model) Forward(b *nn.Batch) *mlx.Array {
	h := m.Stage().Enter(b, func() *mlx.Array {
		return mlx.MixRows(mlx.ExpandDims(b.Embedded(m.Embed(b.Tokens)), 1), m.spread, nil, nil)
	}, m.spread.Dim(0), m.hidden)
	first, end := m.Stage().Own(len(m.layers))
	for i := first; i < end; i++ {
		if i == len(m.layers)-1 {
			b = b.Ending()
		}
		h = m.layers[i].apply(b, h)
	}
	if m.Stage() != nil {
		return m.Stage().Leave(b, h)
	}
	return m.Norm.Apply(m.head.apply(h))
}

// Finish implements [models.Staged].
func (m *Model) Finish(rows int) *mlx.Array {
	return m.Norm.Apply(m.head.apply(m.Stage().Returned(rows, m.spread.Dim(0), m.hidden)))
}

// apply returns the streams [A, n, hidden] after the layer, of the rows that b.Queried selects.
func (l *layer) apply(b *nn.Batch, h *mlx.Array) *mlx.Array {
	s := l.mixerStreams.read(h)
	out := l.mixer.apply(b, l.mixerNorm.Apply(s.in))
	h = s.queried(b).write(out)
	s = l.networkStreams.read(h)
	return s.write(l.network.apply(b.Queried(b.Tokens), l.networkNorm.Apply(s.in)))
}
