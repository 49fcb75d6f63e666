package gemma4_assistant

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ordered is a head that scores clusters of tokens, and then only the tokens of the best clusters.
type ordered struct {
	centroids *nn.Linear
	tokens    *mlx.Array // int32 [clusters, tokens per cluster]
	best      int        // number of clusters whose tokens are scored
	vocab     int
}

func newOrdered(w *nn.Weights, c *types.Gemma4Assistant) *ordered {
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
	// The ids are used as indices without further checks.
	least, most := mlx.Min(tokens, false).Int(), mlx.Max(tokens, false).Int()
	if least < 0 || most >= o.vocab {
		w.Reject(base+"token_ordering", fmt.Sprintf("has ids from %d to %d, but the vocabulary has %d", least, most, o.vocab))
		return o
	}
	o.tokens = w.Constant(mlx.AsType(mlx.Reshape(tokens, c.Centroids, -1), mlx.Int32))
	return o
}

// logits returns the logits [T, vocab] of rows [T, hidden]. Tokens that are not scored get the minimum of the row's
// logits minus 1.
func (o *ordered) logits(x *mlx.Array, head *nn.Embedding) *mlx.Array {
	best := mlx.Largest(o.centroids.Apply(x), o.best)[1]
	ids := mlx.Reshape(mlx.Take(o.tokens, best, 0), x.Dim(0), -1)
	vectors := head.Lookup(ids) // [T, n, hidden]
	logits := mlx.Squeeze(mlx.MatMul(mlx.ExpandDims(x, 1), mlx.SwapAxes(vectors, 1, 2)), 1)
	others := mlx.AddScalar(mlx.Min(logits, true, 1), -1)
	return mlx.PutAlongAxis(mlx.BroadcastTo(others, x.Dim(0), o.vocab), ids, logits, 1)
}
