package nn

import (
	"math"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// GatedAttentionOptions are the differences between the models' gated attention.
type GatedAttentionOptions struct {
	Gate     string // the gate's projection, below the name of the attention
	PerHead  bool   // the gate has one element for each head, not for each channel
	Softplus bool   // the output is multiplied by the softplus of the gate, not by its sigmoid
	Rope     *Rope  // nil: queries and keys are not rotated
	Window   int    // positions that a row sees, including its own; 0 means all up to its own
}

// GatedAttention is grouped-query attention whose output is multiplied by a function of a gate. Queries and keys are
// normalized per head, before rope.
type GatedAttention struct {
	layer            int
	q, k, v, o, gate *Linear
	qNorm, kNorm     *Norm
	softplus         bool
	perHead          bool
	options          AttendOptions
}

// NewGatedAttention takes NAME.q_proj, k_proj, v_proj and o_proj, with the biases that c names, q_norm, k_norm and the
// gate, for a layer.
func NewGatedAttention(w *Weights, name string, layer int, c config.Common, o GatedAttentionOptions) *GatedAttention {
	heads := func(part string, n, dim int, bias bool) *Linear {
		return NewLinear(w, name+part, n*dim, c.Hidden, bias).Split(n)
	}
	size := c.HeadDim
	if o.PerHead {
		size = 1
	}
	return &GatedAttention{
		layer:    layer,
		q:        heads(".q_proj", c.Heads, c.HeadDim, c.AttentionBias),
		k:        heads(".k_proj", c.KVHeads, c.HeadDim, c.AttentionBias),
		v:        heads(".v_proj", c.KVHeads, c.HeadDim, c.AttentionBias),
		o:        NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.OutputBias).Join(),
		gate:     heads(o.Gate, c.Heads, size, false),
		qNorm:    NewRMSNorm(w, name+".q_norm", c.HeadDim, c.NormEps),
		kNorm:    NewRMSNorm(w, name+".k_norm", c.HeadDim, c.NormEps),
		softplus: o.Softplus,
		perHead:  o.PerHead,
		options:  AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Window: o.Window, Rope: o.Rope},
	}
}

// AddApply implements [Mixer].
func (a *GatedAttention) AddApply(b *Batch, n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	gate := a.gate.Apply(b.Queried(x))
	qkv := Queries(b, x, a.q, a.k, a.v)
	q, k := a.options.Rope.ApplyNormed(b, a.qNorm, a.kNorm, qkv[0], qkv[1])
	attended := Attend(b, a.layer, q, k, qkv[2], a.options)
	switch {
	case a.softplus:
		attended = mlx.Multiply(attended, mlx.Softplus(gate))
	case a.perHead:
		attended = mlx.Multiply(attended, mlx.Sigmoid(gate))
	default:
		return b.Queried(sum), a.o.ApplyGated(mlx.SigmoidActivation, gate, attended)
	}
	return b.Queried(sum), a.o.Apply(attended)
}
