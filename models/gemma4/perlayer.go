package gemma4

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// PerLayer provides each layer with a vector for each token: a looked-up vector plus a projection of the token's
// embedding.
type PerLayer struct {
	layers     int // that this rank and those after it have
	size       int // of a layer's vector
	tokens     int // in the table
	all        bool
	table      *nn.Embedding // all layers' vectors concatenated
	projection *nn.Linear
	norm       *nn.Norm
}

// NewPerLayer returns nil if the model has no per-layer embeddings.
func NewPerLayer(w *nn.Weights, c *types.Gemma4) *PerLayer {
	if c.PerLayerHidden == 0 {
		return nil
	}
	size, all := c.PerLayerHidden, c.Layers*c.PerLayerHidden
	return &PerLayer{
		layers: c.Layers - w.FirstLayer(),
		size:   size,
		tokens: c.PerLayerVocab,
		all:    c.PerLayerVocab >= c.Vocab,
		table: nn.NewEmbedding(w, c.Prefix+"embed_tokens_per_layer", c.PerLayerVocab, all).
			Scaled(math.Sqrt(float64(size))),
		projection: nn.NewLinear(w, c.Prefix+"per_layer_model_projection", all, c.Hidden, false).Split(c.Layers),
		// The reference divides by sqrt(hidden) before the norm, which only affects the norm's eps.
		norm: nn.NewRMSNorm(w, c.Prefix+"per_layer_projection_norm", size, c.NormEps*float64(c.Hidden)),
	}
}

// Vectors returns the vectors [T, layers*size] of tokens with embeddings h. Tokens beyond the table have the one of
// token 0, as in the reference.
func (p *PerLayer) Vectors(h, tokens *mlx.Array) *mlx.Array {
	if p == nil {
		return nil
	}
	if !p.all {
		tokens = mlx.KnownIDs(tokens, p.tokens)
	}
	lookedUp := p.table.Lookup(tokens)
	projected := mlx.Reshape(p.norm.Apply(p.projection.Apply(h)), lookedUp.Shape()...)
	return mlx.MultiplyScalar(mlx.Add(projected, lookedUp), math.Sqrt2/2)
}

// Width returns the width of the vectors of this rank's layers and those after them. It is 0 without vectors.
func (p *PerLayer) Width() int {
	if p == nil {
		return 0
	}
	return p.layers * p.size
}

// After returns rows h [T, width] joined with the vectors of the layers after the first n of this rank. vectors are
// those of the rank's layers and all after them.
func (p *PerLayer) After(n int, h, vectors *mlx.Array) *mlx.Array {
	if p == nil || n == p.layers {
		return h
	}
	return mlx.Concatenate(1, h, mlx.SliceAxis(vectors, 1, mlx.Range(n*p.size, p.layers*p.size)))
}

// Cut is the reverse of After: it returns the rows [T, width] and the vectors, nil if there are none.
func (p *PerLayer) Cut(x *mlx.Array, width int) (h, vectors *mlx.Array) {
	if p == nil {
		return x, nil
	}
	return mlx.SliceAxis(x, 1, mlx.Range(0, width)), mlx.SliceAxis(x, 1, mlx.Range(width, x.Dim(1)))
}

// PerLayerGate adds a layer's vectors to its output, gated by that output.
type PerLayerGate struct {
	index, size int
	gate, back  *nn.Linear
	norm        *nn.Norm
}

// NewPerLayerGate builds the gate of layer i; nil if the model has no per-layer embeddings.
func NewPerLayerGate(w *nn.Weights, prefix string, c *types.Gemma4, i int) *PerLayerGate {
	if c.PerLayerHidden == 0 {
		return nil
	}
	return &PerLayerGate{
		index: i - w.FirstLayer(),
		size:  c.PerLayerHidden,
		gate:  nn.NewLinear(w, prefix+"per_layer_input_gate", c.PerLayerHidden, c.Hidden, false),
		back:  nn.NewLinear(w, prefix+"per_layer_projection", c.Hidden, c.PerLayerHidden, false),
		norm:  nn.NewRMSNorm(w, prefix+"post_per_layer_input_norm", c.Hidden, c.NormEps),
	}
}

// Apply returns the term to add to h [T, hidden]. vectors are those of this rank's layers and all after them.
func (g *PerLayerGate) Apply(h, vectors *mlx.Array) *mlx.Array {
	own := mlx.SliceAxis(vectors, 1, mlx.Range(g.index*g.size, (g.index+1)*g.size))
	return g.norm.Apply(g.back.ApplyGated(mlx.GELUTanhActivation, g.gate.Apply(h), own))
}
