package recurrent

import (
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ShortConv is a gated short convolution: a projection gives B, C and x of a row; B*x passes a causal convolution of a
// few rows, and C gates the result.
//
// Reference: transformers 5.23, Lfm2ShortConv in models/lfm2/modeling_lfm2.py.
type ShortConv struct {
	layer, taps int
	b, c, x     *nn.Linear
	conv, bias  *mlx.Array // [taps, hidden], [hidden] or nil
	out         *nn.Linear
}

// NewShortConv takes NAME.in_proj, NAME.conv and NAME.out_proj of a layer, with or without biases.
func NewShortConv(w *nn.Weights, name string, layer, hidden, taps int, biased bool) *ShortConv {
	parts := nn.NewLinearParts(w, name+".in_proj", []int{hidden, hidden, hidden}, hidden, biased)
	l := &ShortConv{layer: layer, taps: taps, b: parts[0], c: parts[1], x: parts[2]}
	l.conv, l.bias = w.Convolution(name+".conv", hidden, taps, biased)
	l.out = nn.NewLinear(w, name+".out_proj", hidden, hidden, biased)
	return l
}

// AddApply implements [nn.Mixer]. Each segment continues from the last rows of its sequence.
func (l *ShortConv) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.b, l.c, l.x)
	rows := mlx.Multiply(in[0], in[2])
	r := b.Recurrence(l.layer, rows, l.taps, nil)
	mixed := r.Convolve(rows, l.conv, l.bias, false)
	r.Stop()
	return b.Queried(sum), l.out.Apply(mlx.Multiply(b.Queried(in[1]), b.Queried(mixed)))
}
