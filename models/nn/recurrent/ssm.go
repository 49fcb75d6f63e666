package recurrent

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// SSM is a Mamba 2 layer, a selective scan. A projection gives gates, the inputs x, B and C, and a step size for each
// head; x, B and C pass a short causal convolution. Each head keeps a state matrix. Every row decays it by the step,
// adds the outer product of x and B, and reads it with C. The output is gated by another projection of the row and
// normalized by groups, before or after the gate.
//
// Reference: transformers 5.23, Mamba2Mixer in models/mamba2/modeling_mamba2.py.
type SSM struct {
	layer       int
	shape       config.SSM
	z, in, dt   *nn.Linear
	conv, bias  *mlx.Array // [taps, channels of x, B and C], [channels] or nil
	steps       *mlx.Array // float32 [heads]: dt_bias
	rate, skip  *mlx.Array // float32 [heads]: -exp(A_log), D
	norm        *mlx.Array // [width], or nil
	eps         float64
	out         *nn.Linear
	multipliers ssmMultipliers
}

// ssmMultipliers are the factors of the projections' outputs; nil arrays mean none.
type ssmMultipliers struct {
	z, dt float64
	in    *mlx.Array // [channels]
}

// NewSSM takes the tensors NAME.in_proj, conv1d, dt_bias, A_log, D, norm and out_proj of a layer. eps is for the
// output norm.
func NewSSM(w *nn.Weights, name string, layer int, d config.SSM, hidden int, eps float64) *SSM {
	parts := nn.NewLinearParts(w, name+".in_proj", []int{d.Width(), d.Channels(), d.Heads}, hidden, d.Bias)
	l := &SSM{
		layer: layer,
		z:     parts[0],
		in:    parts[1],
		dt:    parts[2],
		eps:   eps,
		out:   nn.NewLinear(w, name+".out_proj", hidden, d.Width(), d.OutputBias),
	}
	l.conv, l.bias = w.Convolution(name+".conv1d", d.Channels(), d.Kernel, d.ConvBias)
	l.steps = w.Float32(w.Take(name+".dt_bias", d.Heads), nil)
	l.skip = w.Float32(w.Take(name+".D", d.Heads), nil)
	l.rate = w.Float32(w.Take(name+".A_log", d.Heads), negativeExp)
	if d.Norm != config.NoNorm {
		l.norm = w.Take(name+".norm.weight", d.Width())
	}
	_, d.Heads = w.Own(name+".A_log", d.Heads)
	_, d.Groups = w.Own(name+".A_log", d.Groups)
	l.shape = d // of this rank
	if m := d.Multipliers; m != nil && l.conv != nil {
		l.multipliers = ssmMultipliers{z: m[0], dt: m[4]}
		l.multipliers.in = w.Constant(mlx.Concatenate(0,
			mlx.Full(l.conv.Thread(), m[1], w.DType, d.Width()),
			mlx.Full(l.conv.Thread(), m[2], w.DType, d.Groups*d.State),
			mlx.Full(l.conv.Thread(), m[3], w.DType, d.Groups*d.State)))
	}
	return l
}

// AddApply implements [nn.Mixer]. Each segment continues from the state of its sequence.
func (l *SSM) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.z, l.in, l.dt)
	return b.Queried(sum), l.apply(b, in)
}

// Apply is AddApply for rows that are already normalized.
func (l *SSM) Apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	return l.apply(b, nn.Linears(x, l.z, l.in, l.dt))
}

func (l *SSM) apply(b *nn.Batch, in []*mlx.Array) *mlx.Array {
	d := l.shape
	z, rows, dt := in[0], in[1], in[2]
	if m := l.multipliers; m.in != nil {
		z, rows = mlx.MultiplyScalar(z, m.z), mlx.Multiply(rows, m.in)
		dt = mlx.MultiplyScalar(dt, m.dt)
	}
	r := b.Recurrence(l.layer, rows, d.Kernel, []int{d.Heads, d.HeadDim, d.State})
	parts := mlx.Split(r.Convolve(rows, l.conv, l.bias, true), 1, d.Width(), d.Width()+d.Groups*d.State)
	v := mlx.Reshape(parts[0], -1, d.Heads, d.HeadDim)
	k := mlx.Reshape(parts[1], -1, d.Groups, d.State)
	q := mlx.Reshape(parts[2], -1, d.Groups, d.State)
	said := r.Scan(l.rows, q, k, v, mlx.StepSizes(dt, l.steps, d.MinStep, d.MaxStep))
	return l.finish(b.Queried(z), mlx.Reshape(b.Queried(said), -1, d.Width()))
}

func (l *SSM) rows(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.StateScan(in[0], in[1], in[2], in[3], l.rate, l.skip, states, inPlace, lengths...)
}

// finish gates and normalizes outputs, and projects them.
func (l *SSM) finish(z, y *mlx.Array) *mlx.Array {
	switch l.shape.Norm {
	case config.NoNorm:
		return l.out.ApplyGated(mlx.SiLUActivation, z, y)
	case config.NormBeforeGate:
		return l.out.ApplyGated(mlx.SiLUActivation, z, l.normed(y))
	}
	return l.out.Apply(l.normed(mlx.SwiGLU(z, y)))
}

// normed is an RMSNorm of each group.
func (l *SSM) normed(y *mlx.Array) *mlx.Array {
	if l.shape.Groups == 1 {
		return mlx.RMSNorm(y, l.norm, l.eps)
	}
	groups := mlx.RMSNorm(mlx.Reshape(y, y.Dim(0), l.shape.Groups, -1), nil, l.eps)
	return mlx.Multiply(mlx.Reshape(groups, y.Dim(0), -1), l.norm)
}
