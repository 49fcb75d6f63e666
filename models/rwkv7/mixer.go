package rwkv7

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// mixer is a layer's recurrence. Six inputs are blends of a row and the row before. Each head keeps a matrix: every row
// decays its columns, replaces a part of what it says of the row's key, and reads it.
type mixer struct {
	layer             int // of its state
	heads, dim        int
	before            shift
	by                *mlx.Array // [6, hidden]: the parts of the row before
	r, k, v, o        *nn.Linear
	decay, rate, gate *product
	mix               *product     // of the first layer's values; nil in the first layer
	parts             []*mlx.Array // float32 [heads, dim]; see mlx.WKVScan
	eps               float64
}

// inputs are the names of the six blends, in the order of their rows.
var inputs = []string{"r", "w", "k", "v", "a", "g"}

func newMixer(w *nn.Weights, name string, layer int, c *types.Rwkv7, before shift) *mixer {
	square := func(part string) *nn.Linear { return nn.NewLinear(w, name+part, c.Hidden, c.Hidden, false) }
	_, heads := w.Own(name+".r_proj.weight", c.Heads)
	m := &mixer{
		layer:  2 * layer,
		heads:  heads,
		dim:    c.HeadDim,
		before: before,
		r:      square(".r_proj").Split(c.Heads),
		k:      square(".k_proj").Split(c.Heads),
		v:      square(".v_proj").Split(c.Heads),
		o:      square(".o_proj"),
		decay:  newProduct(w, name+".w_lora", c.Decay, c, true).split(c.Heads),
		rate:   newProduct(w, name+".a_lora", c.Rate, c, true).split(c.Heads),
		gate:   newProduct(w, name+".g_lora", c.GateRank, c, false),
		eps:    c.NormEps * float64(c.HeadDim),
	}
	if layer > 0 {
		m.mix = newProduct(w, name+".v_lora", c.Value, c, true).split(c.Heads)
	}
	var by []*mlx.Array
	for _, part := range inputs {
		by = append(by, w.Take(name+".x_"+part, c.Hidden))
	}
	parts := []*mlx.Array{
		w.Take(name+".k_k", c.Hidden), w.Take(name+".k_a", c.Hidden), w.Take(name+".r_k", c.Heads, c.HeadDim),
		w.Take(name+".g_norm.weight", c.Hidden), w.Take(name+".g_norm.bias", c.Hidden),
	}
	for _, x := range append(by, parts...) {
		if x == nil {
			return m
		}
	}
	m.by = w.Constant(typed(w, mlx.Stack(0, by...)))
	for _, x := range parts {
		wide := mlx.AsType(mlx.Reshape(x, heads, c.HeadDim), mlx.Float32)
		m.parts = append(m.parts, w.Constant(mlx.Contiguous(wide)))
	}
	return m
}

// apply returns the outputs for rows x [T, hidden], and their values [T, heads, dim]. first are the values of the first
// layer.
func (m *mixer) apply(b *nn.Batch, x, first *mlx.Array) (out, values *mlx.Array) {
	r := b.Recurrence(m.layer, x, 2, []int{m.heads, m.dim, m.dim})
	delta := r.Convolve(x, m.before.weights, nil, false)
	in := mlx.BlendRows(x, delta, m.by)
	read, key, values := m.r.Apply(in[0]), m.k.Apply(in[2]), m.v.Apply(in[3])
	decay := m.decay.apply(in[1], func(x *mlx.Array) *mlx.Array { return mlx.Softcap(x, 1) }) // tanh
	rate := m.rate.apply(in[4], nil)
	if m.mix != nil {
		of := mlx.Sigmoid(m.mix.apply(in[3], nil))
		values = mlx.Add(values, mlx.Multiply(mlx.Add(first, mlx.MultiplyScalar(values, -1)), of))
	}
	y := mlx.Reshape(r.Scan(m.scan, read, decay, key, values, rate), -1, m.heads*m.dim)
	return m.o.Apply(mlx.Multiply(y, m.gate.apply(in[5], mlx.Sigmoid))), values
}

func (m *mixer) scan(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.WKVScan(in[0], in[1], in[2], in[3], in[4], m.parts, m.eps, states, inPlace, lengths...)
}

// product is a product of low rank, with an activation between its matrices.
type product struct{ down, up *nn.Linear }

func newProduct(w *nn.Weights, name string, rank int, c *types.Rwkv7, bias bool) *product {
	return &product{
		down: nn.NewLinear(w, name+".lora.0", rank, c.Hidden, false),
		up:   nn.NewLinear(w, name+".lora.2", c.Hidden, rank, bias),
	}
}

// split splits the output into heads.
func (p *product) split(heads int) *product {
	p.up.Split(heads)
	return p
}

// apply maps [T, hidden] to [T, hidden] or [T, heads, dim]. Without act there is no activation.
func (p *product) apply(x *mlx.Array, act func(*mlx.Array) *mlx.Array) *mlx.Array {
	x = p.down.Apply(x)
	if act != nil {
		x = act(x)
	}
	return p.up.Apply(x)
}
