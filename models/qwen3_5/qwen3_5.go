// Package qwen3_5 runs model type "qwen3_5": decoder layers with a SwiGLU MLP, most with Gated DeltaNet and some with
// full attention whose output is gated. Optional parts of a checkpoint are a multi-token prediction head and a vision
// tower.
//
// Reference: transformers 5.23, models/qwen3_5/modeling_qwen3_5.py.
package qwen3_5

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	models.Register("qwen3_5", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		c := config.(*arch.Qwen35)
		return New(t, c, w, func(name string, _ int) Network {
			return nn.NewMLP(w, name, c.Hidden, c.Intermediate, false, mlx.SiLUActivation)
		})
	})
}

// Model is a qwen3_5 model, or a model that differs from it only in its networks.
type Model struct {
	embed  *nn.Embedding
	layers []layer
	norm   *nn.RMSNorm
	head   *nn.Linear // nil if embeddings are tied
	mtp    *mtp       // nil if the checkpoint has none
	tower  *tower     // nil if the checkpoint has none
}

// Network is the feed-forward block of a layer. AddApply returns x+y [T, hidden] and the output for the normalized sum.
type Network interface {
	AddApply(n *nn.RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array)
}

// NetworkBuilder builds the network of a layer from the tensors whose names start with name. The layer is -1 for the
// multi-token prediction head.
type NetworkBuilder func(name string, layer int) Network

type layer struct {
	mixerNorm   *nn.RMSNorm
	mixer       mixer
	networkNorm *nn.RMSNorm
	network     Network
}

// mixer is the token mixer of a layer: attention or Gated DeltaNet. AddApply returns x+y [T, hidden] and the output for
// the normalized sum. If y is nil the sum is x.
type mixer interface {
	AddApply(b *nn.Batch, layer int, n *nn.RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array)
}

// New builds a model with networks from the caller. It takes every tensor of c's tensor table except those of networks.
func New(t *mlx.Thread, c *arch.Qwen35, w *nn.Weights, network NetworkBuilder) *Model {
	m := &Model{
		embed: nn.NewEmbedding(w, c.Prefix+"embed_tokens", c.Vocab, c.Hidden),
		norm:  newNorm(w, c.Prefix+"norm", c),
	}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Sections(c.Sections, c.Interleaved)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var x mixer
		if c.Full[i] {
			x = newAttention(w, p+"self_attn", c, rope)
		} else {
			x = nn.NewGatedDelta(w, p+"linear_attn", c.Delta, c.Hidden, c.NormEps)
		}
		m.layers = append(m.layers, newLayer(w, p, c, x, network(p+"mlp", i)))
	}
	if !c.TieEmbeddings {
		m.head = nn.NewLinear(w, "lm_head", c.Vocab, c.Hidden, false)
	}
	m.tower = newTower(t, w, c.Vision)
	m.mtp = newMTP(w, c, rope, m, network)
	return m
}

func newNorm(w *nn.Weights, name string, c *arch.Qwen35) *nn.RMSNorm {
	return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne()
}

func newLayer(w *nn.Weights, p string, c *arch.Qwen35, x mixer, n Network) layer {
	return layer{
		mixerNorm:   newNorm(w, p+"input_layernorm", c),
		mixer:       x,
		networkNorm: newNorm(w, p+"post_attention_layernorm", c),
		network:     n,
	}
}

// Layers implements models.Model.
func (m *Model) Layers() []cache.Kind {
	kinds := make([]cache.Kind, len(m.layers))
	for i, l := range m.layers {
		kinds[i] = cache.Recurrent
		if a, ok := l.mixer.(*attention); ok {
			kinds[i] = a.options.Kind()
		}
	}
	return kinds
}

// Embed implements models.Model.
func (m *Model) Embed(tokens *mlx.Array) *mlx.Array { return m.embed.Lookup(tokens) }

// Forward implements models.Model.
func (m *Model) Forward(b *nn.Batch) *mlx.Array {
	h := b.Embedded(m.Embed(b.Tokens))
	var y *mlx.Array // the previous block's output, not yet added to h
	for i := range m.layers {
		h, y = m.layers[i].apply(b, i, h, y, i == len(m.layers)-1)
	}
	_, x := m.norm.AddApply(h, y)
	return x
}

// apply returns h plus the output of the mixer, and the output of the network. The last layer returns only the wanted
// rows.
func (l *layer) apply(b *nn.Batch, index int, h, y *mlx.Array, last bool) (sum, adds *mlx.Array) {
	if last {
		b = b.Ending()
	}
	h, y = l.mixer.AddApply(b, index, l.mixerNorm, h, y)
	return l.network.AddApply(l.networkNorm, h, y)
}

// Head implements models.Model.
func (m *Model) Head(hidden *mlx.Array) *mlx.Array {
	if m.head == nil {
		return m.embed.Project(hidden)
	}
	return m.head.Apply(hidden)
}
