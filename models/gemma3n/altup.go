package gemma3n

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// streams makes the versions of the residual stream, and one stream of them again.
type streams struct {
	in, out []*nn.Linear // of the versions after the first
	mean    *mlx.Array   // float32 [1, n]: 1/n
}

func newStreams(t *mlx.Thread, w *nn.Weights, c *types.Gemma3n) *streams {
	s := &streams{mean: w.Constant(mlx.Full(t, 1/float64(c.Streams), mlx.Float32, 1, c.Streams))}
	for i := range c.Streams - 1 {
		square := func(name string) *nn.Linear {
			return nn.NewLinear(w, fmt.Sprintf("%s%s.%d", c.Prefix, name, i), c.Hidden, c.Hidden, false)
		}
		s.in = append(s.in, square("altup_projections"))
		s.out = append(s.out, square("altup_unembed_projections"))
	}
	return s
}

// begin returns the versions [T, n, hidden] of embeddings h [T, hidden].
func (s *streams) begin(h *mlx.Array) *mlx.Array {
	versions := []*mlx.Array{h}
	for _, x := range nn.Linears(h, s.in...) {
		versions = append(versions, mlx.RescaleRows(x, h, leastSquare))
	}
	return mlx.Reshape(mlx.Concatenate(1, versions...), h.Dim(0), len(versions), -1)
}

// end returns the mean [T, hidden] of versions x.
func (s *streams) end(x *mlx.Array) *mlx.Array {
	parts := mlx.SplitEven(x, len(s.out)+1, 1)
	first := mlx.Squeeze(parts[0], 1)
	versions := []*mlx.Array{first}
	for i, l := range s.out {
		versions = append(versions, mlx.RescaleRows(l.Apply(mlx.Squeeze(parts[i+1], 1)), first, leastSquare))
	}
	all := mlx.Reshape(mlx.Concatenate(1, versions...), x.Dim(0), len(versions), -1)
	return mlx.Squeeze(mlx.MixRows(all, s.mean, nil, nil), 1)
}

// leastSquare is the least mean square that rows are scaled by.
const leastSquare = 1e-5

// altup predicts the versions of the residual stream before a layer, and corrects them by its output (Alternating
// Updates).
type altup struct {
	index      int // of the active version, which the layer computes
	n          int
	norm       *mlx.Array // [hidden]
	eps        float64
	router     *nn.Linear
	prediction *nn.Linear // in float32, as correction
	correction *nn.Linear
	scale      *mlx.Array // [hidden] of the active version for the per-layer embeddings, or nil
	others     *mlx.Array // float32 [n]: 1 for the versions that have the per-layer embeddings, all but the first
}

func newAltup(w *nn.Weights, name string, c *types.Gemma3n) *altup {
	n := c.Streams
	a := &altup{index: c.Active, n: n, eps: c.NormEps}
	a.router = nn.NewLinear(w, name+".modality_router", n, c.Hidden, false)
	if c.CorrectScale {
		a.scale = w.Take(name+".correct_output_scale", c.Hidden)
	}
	norm := w.Take(name+".router_norm.weight", c.Hidden)
	prediction := w.Take(name+".prediction_coefs.weight", n*n, n)
	correction := w.Take(name+".correction_coefs.weight", n, n)
	if norm == nil || prediction == nil || correction == nil {
		return a
	}
	// The router divides its input by its width.
	a.norm = w.Constant(mlx.MultiplyScalar(norm, 1/float64(c.Hidden)))
	mask, identity, ones := make([]float32, n), make([]float32, n*n), make([]float32, n)
	for i := range n {
		ones[i], identity[i*n+i], mask[i] = 1, 1, 1
	}
	mask[0] = 0
	constant := func(list []float32) *mlx.Array { return w.Constant(mlx.FromSlice(norm.Thread(), list)) }
	wide := func(x *mlx.Array) *mlx.Array { return w.Constant(mlx.AsType(x, mlx.Float32)) }
	a.others = constant(mask)
	a.prediction = nn.LinearOf(wide(prediction), constant(identity))
	a.correction = nn.LinearOf(wide(correction), constant(ones))
	return a
}

// active returns the active version [T, hidden] of x [T, n, hidden].
func (a *altup) active(x *mlx.Array) *mlx.Array {
	return mlx.Squeeze(mlx.SliceAxis(x, 1, mlx.Range(a.index, a.index+1)), 1)
}

// route returns what the coefficients of rows h [T, hidden] are made from: float32 [T, n].
func (a *altup) route(h *mlx.Array) *mlx.Array {
	routed := a.router.Apply(mlx.RMSNorm(h, a.norm, a.eps))
	return mlx.Softcap(mlx.AsType(routed, mlx.Float32), 1)
}

// predict returns the predicted versions: each is itself plus a sum of all with coefficients of the row.
func (a *altup) predict(x *mlx.Array) *mlx.Array {
	coefficients := mlx.Reshape(a.prediction.Apply(a.route(a.active(x))), -1, a.n, a.n)
	return mlx.MixRows(x, coefficients, nil, nil)
}

// correct adds the difference of the layer's output h [T, hidden] to the active version to all versions, with
// coefficients of the row. term returns what is added to all but the first, for the corrected active version.
func (a *altup) correct(predicted, h *mlx.Array, term func(active *mlx.Array) *mlx.Array) *mlx.Array {
	innovation := mlx.Add(h, mlx.MultiplyScalar(a.active(predicted), -1))
	corrected := mlx.MixRows(predicted, nil, innovation, a.correction.Apply(a.route(h)))
	active := a.active(corrected)
	if a.scale != nil {
		active = mlx.Multiply(active, a.scale)
	}
	return mlx.MixRows(corrected, nil, term(active), a.others)
}
