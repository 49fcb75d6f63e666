package recurrent

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ChannelSSM is a Mamba layer, a selective scan. A projection gives the inputs, which pass a short causal convolution,
// and gates. From the convolved rows projections give a step for each channel, B and C. Each channel keeps a vector:
// every row decays it by the step, adds B times its input, and reads it with C.
//
// Reference: transformers 5.23, MambaMixer in models/mamba/modeling_mamba.py.
type ChannelSSM struct {
	layer                int
	shape                config.ChannelSSM
	in, z                *nn.Linear
	conv, bias           *mlx.Array // [taps, channels], [channels] or nil
	x, dt                *nn.Linear // of convolved rows: what the steps are made from, B and C; the steps
	steps, rate, skip    *mlx.Array // float32: [channels], [channels, state] and [channels]
	dtNorm, bNorm, cNorm *nn.Norm   // nil means none
	out                  *nn.Linear
}

// NewChannelSSM takes the tensors NAME.in_proj, conv1d, x_proj, dt_proj, A_log, D and out_proj of a layer and, if it
// has norms, NAME.dt_layernorm, b_layernorm and c_layernorm. eps is for the norms.
func NewChannelSSM(w *nn.Weights, name string, layer int, d config.ChannelSSM, hidden int, eps float64) *ChannelSSM {
	parts := nn.NewLinearParts(w, name+".in_proj", []int{d.Width, d.Width}, hidden, d.Bias)
	l := &ChannelSSM{
		layer: layer,
		shape: d,
		in:    parts[0],
		z:     parts[1],
		x:     nn.NewLinear(w, name+".x_proj", d.Rank+2*d.State, d.Width, false),
		dt:    nn.NewLinear(w, name+".dt_proj", d.Width, d.Rank, false),
		steps: w.Float32(w.Take(name+".dt_proj.bias", d.Width), nil),
		rate:  w.Float32(w.Take(name+".A_log", d.Width, d.State), negativeExp),
		skip:  w.Float32(w.Take(name+".D", d.Width), nil),
		out:   nn.NewLinear(w, name+".out_proj", hidden, d.Width, d.Bias),
	}
	l.conv, l.bias = w.Convolution(name+".conv1d", d.Width, d.Kernel, d.ConvBias)
	if d.Norms {
		l.dtNorm = nn.NewRMSNorm(w, name+".dt_layernorm", d.Rank, eps)
		l.bNorm = nn.NewRMSNorm(w, name+".b_layernorm", d.State, eps)
		l.cNorm = nn.NewRMSNorm(w, name+".c_layernorm", d.State, eps)
	}
	return l
}

// AddApply implements [nn.Mixer]. Each segment continues from the state of its sequence.
func (l *ChannelSSM) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	d := l.shape
	sum, in := nn.NormedLinears(n, x, y, l.in, l.z)
	r := b.Recurrence(l.layer, in[0], d.Kernel, []int{d.Width, d.State})
	rows := r.Convolve(in[0], l.conv, l.bias, true)
	parts := mlx.Split(l.x.Apply(rows), 1, d.Rank, d.Rank+d.State)
	steps := mlx.StepSizes(l.dt.Apply(l.dtNorm.Apply(parts[0])), l.steps, 0, 0)
	wide := func(x *mlx.Array) *mlx.Array { return mlx.AsType(x, mlx.Float32) }
	said := r.Scan(l.rows, wide(rows), steps, wide(l.bNorm.Apply(parts[1])), wide(l.cNorm.Apply(parts[2])))
	said = mlx.AsType(said, rows.DType())
	return b.Queried(sum), l.out.ApplyGated(mlx.SiLUActivation, b.Queried(in[1]), b.Queried(said))
}

func (l *ChannelSSM) rows(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.ChannelScan(in[0], in[1], in[2], in[3], l.rate, l.skip, states, inPlace, lengths...)
}
