package latent

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	_ "github.com/ingotml/ingot/arch/types" // registers every model type
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	for _, a := range arch.All() {
		if a.Latent {
			models.Register(a.ModelType, func(t *mlx.Thread, c described, w *nn.Weights) *Model {
				return New(t, w, c.LatentAttention(), Options{})
			})
		}
	}
}

// described is implemented by the configurations that embed a [config.LatentDecoder].
type described interface {
	arch.Model
	LatentAttention() *config.LatentDecoder
}

// Model is a decoder whose layers are latent attention and an MLP or experts.
type Model = models.Decoder

// New takes every tensor of the tensor table of a decoder with latent attention. It adds the norm before the head to o,
// and o.Scale scales the output of each layer's parts.
func New(t *mlx.Thread, w *nn.Weights, c *config.LatentDecoder, o Options) *Model {
	o.Ends.Norm = nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps)
	m := &Model{Decoder: nn.NewDecoder(w, c.Common, c.State(), o.Ends)}
	rope := nn.NewRope(t, w, c.Rope, c.Latent.RopeDim)
	if c.Latent.Interleaved {
		rope.Interleaved()
	}
	index := newSparse(t, w, c)
	for i := range c.Layers {
		b := newBlock(w, fmt.Sprintf("%slayers.%d.", c.Prefix, i), i, c, rope, c.Mixture.Sparse != nil && c.Mixture.Sparse[i])
		b.Scale = o.Scale
		b.Mixer.(*Attention).sparse = index.layer(w, fmt.Sprintf("%slayers.%d.self_attn.indexer", c.Prefix, i), i)
		m.Blocks = append(m.Blocks, b)
	}
	m.Next = newNext(w, c, rope, m)
	return m
}

// Options are the differences between the models. The zero value is a plain decoder.
type Options struct {
	Ends  nn.DecoderOptions
	Scale float64 // see [nn.Block]
}

// newBlock takes the tensors of a layer, whose names start with name.
func newBlock(w *nn.Weights, name string, layer int, c *config.LatentDecoder, rope *nn.Rope, sparse bool) nn.Block {
	norm := func(part string) *nn.Norm { return nn.NewRMSNorm(w, name+part, c.Hidden, c.NormEps) }
	return nn.Block{
		MixerNorm:   norm("input_layernorm"),
		Mixer:       NewAttention(w, name+"self_attn", layer, c, rope),
		NetworkNorm: norm("post_attention_layernorm"),
		Network:     nn.NewNetwork(w, name+"mlp", c.Common, c.Intermediate, c.Mixture, sparse),
	}
}

// sparseLayers makes the sparse attention of a model's layers.
type sparseLayers struct {
	c    *config.LatentDecoder
	rope *nn.Rope
	last *choice
}

func newSparse(t *mlx.Thread, w *nn.Weights, c *config.LatentDecoder) *sparseLayers {
	if c.Index.Heads == 0 {
		return nil
	}
	rope := nn.NewRope(t, w, c.Rope, c.Latent.RopeDim)
	if c.Index.Interleaved {
		rope.Interleaved()
	}
	return &sparseLayers{c, rope, &choice{}}
}

// layer takes the tensors of a layer's indexer, if it has one.
func (s *sparseLayers) layer(w *nn.Weights, name string, layer int) *sparse {
	if s == nil {
		return nil
	}
	own := &sparse{budget: s.c.Index.Budget, last: s.last}
	if s.c.Index.Full[layer] {
		own.indexer = newIndexer(w, name, s.c, s.rope)
	}
	return own
}

// newNext returns the multi-token prediction head, or nil if the checkpoint has none.
func newNext(w *nn.Weights, c *config.LatentDecoder, rope *nn.Rope, m *Model) *models.Next {
	name := c.Next()
	if !c.HasNext() || !w.Has(name+"eh_proj.weight") {
		return nil
	}
	return models.NewNext(w, name, "shared_head.norm", c.Common, m, newBlock(w, name, 0, c, rope, c.Mixture.Sparse != nil))
}
