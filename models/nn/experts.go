package nn

import (
	"cmp"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// Experts are the expert feed-forward blocks of a mixture-of-experts layer. The weights of all experts are one tensor
// and stay packed: a product reads only the experts that some row chose.
type Experts struct {
	gateUp, down *bank
	gelu         bool // tanh approximation of GELU instead of SiLU
	clamp        config.Clamp
	biases       []*mlx.Array // of gateUp [experts, 2*intermediate] and down [experts, hidden]; nil means none
	own          *ownExperts  // nil: this rank has all
}

// NewExperts takes BASE.gate_up_proj [experts, 2*intermediate, hidden], each expert's gate first, and BASE.down_proj
// [experts, hidden, intermediate]. Both may be packed. If experts have biases, the names of weights end in .weight and
// those of biases in .bias. The activation is SiLU, or what e.Clamp says, unless ThroughGELU is called.
func NewExperts(w *Weights, base string, e config.Experts, hidden int) *Experts {
	weight := ""
	if e.Bias {
		weight = ".weight"
	}
	x := &Experts{
		gateUp: newBank(w, base+".gate_up_proj"+weight, e.Count, 2*e.Intermediate, hidden),
		down:   newBank(w, base+".down_proj"+weight, e.Count, hidden, e.Intermediate),
		clamp:  e.Clamp,
	}
	if e.Bias {
		x.biases = []*mlx.Array{
			w.Take(base+".gate_up_proj.bias", e.Count, 2*e.Intermediate), w.Take(base+".down_proj.bias", e.Count, hidden),
		}
	}
	x.own = newOwnExperts(w, x.gateUp)
	return x
}

// ThroughGELU makes the activation the tanh approximation of GELU.
func (e *Experts) ThroughGELU() *Experts {
	e.gelu = true
	return e
}

// Shared is the output of a shared expert, which is added to the output of the chosen ones. The zero value means none.
type Shared struct {
	X    *mlx.Array // [T, hidden]
	Gate *mlx.Array // [T, 1]: X is multiplied by its sigmoid; nil means 1
}

// Apply returns the outputs [T, hidden] for rows x [T, hidden]: the chosen experts' outputs, uint32 [T, k], weighted by
// float32 weights [T, k], plus the shared expert's. The sum is rounded to the type of x once. If ranks have different
// experts, s is this rank's share of the output of shared ones.
func (e *Experts) Apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	return e.own.apply(x, weights, chosen, s, e.apply)
}

func (e *Experts) apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	if x.Thread().Info().GPU && chosen.Size() >= sortedFrom || e.gateUp.observing() {
		return e.combine(e.sorted(x, chosen), weights, chosen, s)
	}
	var formats, groups, bits [2]int
	var parts []*mlx.Array
	for i, b := range []*bank{e.gateUp, e.down} {
		formats[i], groups[i], bits[i] = b.weight.packing()
		parts = append(parts, b.weight.present()...)
	}
	alpha, shift := clamping(e.clamp)
	return mlx.GatedExperts(x, weights, chosen, parts, formats[:], groups[:], bits[:], e.gelu, alpha, e.clamp.Limit, shift,
		e.biases, s.X, s.Gate)
}

// combine adds the outputs [T, k, 1, hidden] of the chosen experts.
func (e *Experts) combine(outs, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	if e.biases == nil {
		return mlx.CombineRows(outs, weights, nil, nil, s.X, s.Gate)
	}
	return mlx.CombineRows(outs, weights, e.biases[1], chosen, s.X, s.Gate)
}

// applyScaled is Apply for the k largest scores [T, experts] of each row, whose sigmoids multiply the rows that the
// experts read.
func (e *Experts) applyScaled(x, scores *mlx.Array, k int, s Shared) *mlx.Array {
	best := mlx.Largest(scores, k)
	rows, t := x.Dim(0), x.Thread()
	of, ones := make([]uint32, rows*k), make([]float32, rows*k)
	for i := range of {
		of[i], ones[i] = uint32(i/k), 1
	}
	d := x.DType()
	weights := mlx.AsType(mlx.Sigmoid(mlx.AsType(best[0], mlx.Float32)), d)
	one := mlx.FromSlice(t, ones, rows*k, 1)
	if k == 1 {
		return e.Apply(mlx.Multiply(x, weights), one, best[1], s)
	}
	// Ranks add up their shares of s together with those of the experts. Rows of experts of other ranks are zeros.
	each := func(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
		scaled := mlx.Multiply(mlx.Take(x, mlx.FromSlice(t, of), 0), mlx.Reshape(mlx.AsType(weights, x.DType()), rows*k, 1))
		scaled = mlx.AsType(mlx.AsType(scaled, d), x.DType()) // rounded as on one rank
		y := e.apply(scaled, one, mlx.Reshape(chosen, rows*k, 1), Shared{})
		return mlx.CombineRows(mlx.Reshape(y, rows, k, -1), mlx.Reshape(one, rows, k), nil, nil, s.X, s.Gate)
	}
	return e.own.apply(x, mlx.AsType(weights, mlx.Float32), best[1], s, each)
}

// picks returns, for choices [T, k] of rows x, the indices [T, k] of their rows and of the choices themselves.
func picks(x, chosen *mlx.Array) (of, own *mlx.Array) {
	rows, k := chosen.Dim(0), chosen.Dim(1)
	row, each := make([]uint32, rows*k), make([]uint32, rows*k)
	for i := range row {
		row[i], each[i] = uint32(i/k), uint32(i)
	}
	return mlx.FromSlice(x.Thread(), row, rows, k), mlx.FromSlice(x.Thread(), each, rows, k)
}

// clamping returns the arguments of [mlx.ClampedSwiGLU].
func clamping(c config.Clamp) (alpha, shift float64) {
	if c.Alpha == 0 {
		return 1, 0
	}
	return c.Alpha, 1
}

// sortedFrom is the number of choices from which a GPU is faster if rows are sorted by expert. On a CPU the kernel
// sorts.
const sortedFrom = 64

func (e *Experts) sorted(x, chosen *mlx.Array) *mlx.Array {
	rows, k := chosen.Dim(0), chosen.Dim(1)
	flat := mlx.Reshape(chosen, -1)
	order := mlx.ArgSort(flat, 0)
	back := mlx.ArgSort(order, 0)
	flat = mlx.Take(flat, order, 0)
	of := mlx.FloorDivide(order, mlx.FromSlice(x.Thread(), []uint32{uint32(k)}))
	x = mlx.ExpandDims(mlx.Take(x, of, 0), 1)
	e.gateUp.observe(x, flat)
	h := e.gateUp.apply(x, nil, flat, true)
	alpha, shift := clamping(e.clamp)
	switch {
	case e.biases != nil:
		h = mlx.ClampedSwiGLU(h, e.biases[0], flat, alpha, e.clamp.Limit, shift)
	case e.clamp.Limit > 0:
		h = mlx.ClampedSwiGLU(h, nil, nil, alpha, e.clamp.Limit, shift)
	case e.gelu:
		h = mlx.GEGLUTanh(h, nil)
	default:
		h = mlx.SwiGLU(h, nil)
	}
	e.down.observe(h, flat)
	h = e.down.apply(h, nil, flat, true)
	return mlx.Reshape(mlx.Take(h, back, 0), rows, k, 1, -1)
}

// Choose returns the experts, uint32 [T, k], of rows with the given scores [T, experts], best first, and their weights,
// float32 [T, k]. Of equal scores the one with the lowest index is better. correction [experts] may be nil.
func Choose(scores, correction *mlx.Array, e config.Experts, r config.Router) (weights, chosen *mlx.Array) {
	return ChooseGiven(scores, correction, nil, e, r)
}

// ChooseGiven is Choose for given experts, uint32 [T, k], unless these are nil.
func ChooseGiven(scores, correction, given *mlx.Array, e config.Experts, r config.Router) (weights, chosen *mlx.Array) {
	if r.SparseMixer {
		both := mlx.SparseMixer(scores, r.Jitter)
		return both[0], both[1]
	}
	scaling := r.Scaling
	if scaling == 0 {
		scaling = 1
	}
	how := mlx.SoftmaxOfScores
	switch {
	case r.Sigmoid:
		how = mlx.SigmoidsOfScores
	case r.SqrtSoftplus:
		how = mlx.SqrtSoftplusOfScores
	}
	both := mlx.ChooseExperts(scores, correction, given, e.PerToken, max(r.Groups, 1), max(r.TopGroups, 1),
		cmp.Or(r.GroupBest, 2), how, e.NormTopK, scaling)
	return both[0], both[1]
}

// bank is a stack of matrices [n, out, in] from which rows select.
type bank struct {
	weight     *Tensor
	name       string     // of the tensor; "" if it is none
	from       *Weights   // has the observer
	transposed *mlx.Array // of plain weights: [experts, in, out], sharing their memory
}

func newBank(w *Weights, name string, experts, out, in int) *bank {
	t := w.Matrix(name, experts, out, in)
	w.noFactor(name, t)
	b := bankOf(w, t)
	b.name, b.from = name, w
	return b
}

func bankOf(w *Weights, t *Tensor) *bank {
	b := &bank{weight: t}
	if t != nil && t.Packed == nil {
		b.transposed = w.Constant(mlx.SwapAxes(t.Array, -1, -2))
	}
	return b
}

// apply multiplies rows of x [..., 1, in] by the matrices of experts. rows holds their indices in the leading axes of
// x. If rows is nil, x has one row for each chosen expert, and experts must be sorted.
func (b *bank) apply(x, rows, experts *mlx.Array, sorted bool) *mlx.Array {
	if p := b.weight.Packed; p != nil {
		return mlx.GatherQMM(x, b.weight.Array, p.Scales, p.Biases, rows, experts, !p.Across, p.Group, p.Bits, p.Mode, sorted)
	}
	return mlx.GatherMM(x, b.transposed, rows, experts, sorted)
}

// observe tells the observer, if there is one, the rows [N, 1, in] that are multiplied by the matrices of experts.
func (b *bank) observe(x, experts *mlx.Array) {
	if b.observing() && b.name != "" {
		b.from.observer.ExpertInput(b.name, b.weight.Shape()[0], mlx.Reshape(x, x.Dim(0), -1), mlx.Reshape(experts, -1))
	}
}

func (b *bank) observing() bool { return b.from != nil && b.from.observer != nil }
