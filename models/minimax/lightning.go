package minimax

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// lightning is lightning attention, a linear attention. Each head keeps a state matrix. Every row decays it by a factor
// that depends on head and layer only, adds the outer product of value and key, and reads it with its query. The
// outputs of all heads are normalized together and gated by another projection of the row.
type lightning struct {
	layer, heads, dim int
	qkv               *nn.Linear // each head's query, key and value
	gate, out         *nn.Linear
	norm              *nn.Norm
	rate              *mlx.Array // float32 [heads]: logarithms of the decays
	ones              *mlx.Array // float32 [1, heads]: steps of the scan
}

// normEps is the eps of the output norm, which the configuration does not give.
const normEps = 1e-6

func newLightning(t *mlx.Thread, w *nn.Weights, name string, layer int, c *types.MiniMax) *lightning {
	width := c.Heads * c.HeadDim
	first, heads := w.Own(name+".qkv_proj.weight", c.Heads)
	return &lightning{
		layer: layer,
		heads: heads,
		dim:   c.HeadDim,
		qkv:   nn.NewLinear(w, name+".qkv_proj", 3*width, c.Hidden, false).Split(c.Heads),
		gate:  nn.NewLinear(w, name+".output_gate", width, c.Hidden, false),
		out:   nn.NewLinear(w, name+".out_proj", c.Hidden, width, false),
		norm:  nn.NewRMSNorm(w, name+".norm", width, normEps),
		rate:  w.Constant(mlx.FromSlice(t, rates(layer, c.Layers, c.Heads)[first:first+heads])),
		ones:  w.Constant(mlx.Full(t, 1, mlx.Float32, 1, heads)),
	}
}

// rates returns the logarithms of the heads' decays: slopes as in ALiBi, smaller in later layers.
func rates(layer, layers, heads int) []float32 {
	list := make([]float32, heads)
	factor := 1 - float64(layer)/(float64(layers-1)+1e-5) + 1e-5
	for i := range list {
		list[i] = float32(-factor * math.Pow(2, -8*float64(i+1)/float64(heads)))
	}
	return list
}

// AddApply implements nn.Mixer. Each segment continues from the state of its sequence.
func (l *lightning) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.qkv, l.gate)
	// The state is float32; so is what it is made from, because rounding errors would accumulate in it.
	qkv := mlx.SplitEven(mlx.AsType(mlx.SiLU(in[0]), mlx.Float32), 3, 2)
	steps := mlx.BroadcastTo(l.ones, x.Dim(0), l.heads)
	said := b.Recurrence(l.layer, in[0], 0, []int{l.heads, l.dim, l.dim}).Scan(l.scan, qkv[0], qkv[1], qkv[2], steps)
	said = mlx.AsType(mlx.Reshape(b.Queried(said), -1, l.heads*l.dim), x.DType())
	return b.Queried(sum), l.out.ApplyGated(mlx.SigmoidActivation, b.Queried(in[1]), l.norm.Apply(said))
}

// scan is the selective scan whose steps are all 1.
func (l *lightning) scan(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.StateScan(in[0], in[1], in[2], in[3], l.rate, nil, states, inPlace, lengths...)
}
