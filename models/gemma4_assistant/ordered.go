package gemma4_assistant

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ordered is a head that scores clusters of tokens, and then the tokens of the best ones alone.
type ordered struct {
	centroids *nn.Linear
	tokens    *mlx.Array // int32 [clusters, tokens of each]
	best      int        // clusters whose tokens are scored
	vocab     int
}

func newOrdered(w *nn.Weights, c *arch.Gemma4Assistant) *ordered {
	const base = "masked_embedding."
	o := &ordered{
		centroids: nn.NewLinear(w, base+"centroids", c.Centroids, c.Text.Hidden, false),
		best:      c.TopK,
		vocab:     c.Text.Vocab,
	}
	tokens := w.Take(base+"token_ordering", o.vocab)
	if tokens == nil {
		return o
	}
	// Ids become addresses.
	least, most := mlx.Min(tokens, false).Int(), mlx.Max(tokens, false).Int()
	if least < 0 || most >= o.vocab {
		w.Reject(base+"token_ordering", fmt.Sprintf("holds ids from %d to %d, the vocabulary has %d", least, most, o.vocab))
		return o
	}
	o.tokens = w.Constant(mlx.AsType(mlx.Reshape(tokens, c.Centroids, -1), mlx.Int32))
	return o
}

// scores gives [T, vocab] of rows [T, hidden]. Tokens that are not scored are put one below the least of the row's scores.
func (o *ordered) scores(x *mlx.Array, head *nn.Embedding) *mlx.Array {
	best := mlx.Largest(o.centroids.Apply(x), o.best)[1]
	ids := mlx.Reshape(mlx.Take(o.tokens, best, 0), x.Dim(0), -1)
	vectors := head.Lookup(ids) // [T, n, hidden]
	scores := mlx.Squeeze(mlx.MatMul(mlx.ExpandDims(x, 1), mlx.SwapAxes(vectors, 1, 2)), 1)
	others := mlx.AddScalar(mlx.Min(scores, true, 1), -1)
	return mlx.PutAlongAxis(mlx.BroadcastTo(others, x.Dim(0), o.vocab), ids, scores, 1)
}
