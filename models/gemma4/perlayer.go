package gemma4

import (
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// perLayer gives each layer a vector of its own for each token: looked up by the token, plus one made of its embedding.
type perLayer struct {
	table *nn.Embedding // all layers' vectors side by side
	made  *nn.Linear
	norm  *nn.RMSNorm
}

func newPerLayer(w *nn.Weights, c *arch.Gemma4) *perLayer {
	if c.PerLayerHidden == 0 {
		return nil
	}
	size, all := c.PerLayerHidden, c.Layers*c.PerLayerHidden
	return &perLayer{
		table: nn.NewEmbedding(w, c.Prefix+"embed_tokens_per_layer", c.PerLayerVocab, all).Scaled(math.Sqrt(float64(size))),
		made:  nn.NewLinear(w, c.Prefix+"per_layer_model_projection", all, c.Hidden, false).Split(c.Layers),
		// The reference divides by sqrt(hidden) first, of which only the norm's eps takes notice.
		norm: nn.NewRMSNorm(w, c.Prefix+"per_layer_projection_norm", size, c.NormEps*float64(c.Hidden)),
	}
}

// vectors gives [T, layers*size] of tokens whose embeddings are h.
func (p *perLayer) vectors(h, tokens *mlx.Array) *mlx.Array {
	if p == nil {
		return nil
	}
	looked := p.table.Lookup(tokens)
	made := mlx.Reshape(p.norm.Apply(p.made.Apply(h)), looked.Shape()...)
	return mlx.MultiplyScalar(mlx.Add(made, looked), math.Sqrt2/2)
}

// perLayerGate adds a layer's vectors to its output.
type perLayerGate struct {
	index, size int
	gate, back  *nn.Linear
	norm        *nn.RMSNorm
}

func newPerLayerGate(w *nn.Weights, prefix string, c *arch.Gemma4, i int) *perLayerGate {
	if c.PerLayerHidden == 0 {
		return nil
	}
	return &perLayerGate{
		index: i,
		size:  c.PerLayerHidden,
		gate:  nn.NewLinear(w, prefix+"per_layer_input_gate", c.PerLayerHidden, c.Hidden, false),
		back:  nn.NewLinear(w, prefix+"per_layer_projection", c.Hidden, c.PerLayerHidden, false),
		norm:  nn.NewRMSNorm(w, prefix+"post_per_layer_input_norm", c.Hidden, c.NormEps),
	}
}

// apply gives what is added to h [T, hidden], of all layers' vectors.
func (g *perLayerGate) apply(h, vectors *mlx.Array) *mlx.Array {
	own := mlx.SliceAxis(vectors, 1, mlx.Range(g.index*g.size, (g.index+1)*g.size))
	return g.norm.Apply(g.back.ApplyGated(mlx.GELUTanhActivation, g.gate.Apply(h), own))
}
