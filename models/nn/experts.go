package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// Experts are the gated feed-forward blocks of a layer of which each row passes a few. Their weights lie together and stay
// packed: a product reads only the experts that some row chose.
type Experts struct {
	gateUp, down *bank
	gelu         bool // by tanh, in place of SiLU
}

// NewExperts takes BASE.gate_up_proj [experts, 2*intermediate, hidden], of each expert the gate first, and BASE.down_proj
// [experts, hidden, intermediate], either of which may be packed. Gates go through SiLU, unless ThroughGELU is called.
func NewExperts(w *Weights, base string, e arch.Experts, hidden int) *Experts {
	return &Experts{
		gateUp: newBank(w, base+".gate_up_proj", e.Count, 2*e.Intermediate, hidden),
		down:   newBank(w, base+".down_proj", e.Count, hidden, e.Intermediate),
	}
}

// ThroughGELU makes gates go through GELU, by tanh.
func (e *Experts) ThroughGELU() *Experts {
	e.gelu = true
	return e
}

// Shared is what an expert that all rows pass gave, to be added to what the chosen ones give. The zero value is none.
type Shared struct {
	X    *mlx.Array // [T, hidden]
	Gate *mlx.Array // [T, 1]: X counts by its sigmoid; nil = whole
}

// Apply gives the sum [T, hidden] of what the chosen experts, uint32 [T, k], make of rows x [T, hidden], by the weights
// float32 [T, k], and of what all rows share. The sum is rounded to the type of x once.
func (e *Experts) Apply(x, weights, chosen *mlx.Array, s Shared) *mlx.Array {
	if x.Thread().Info().GPU && chosen.Size() >= sortedFrom {
		return mlx.CombineRows(e.sorted(x, chosen), weights, s.X, s.Gate)
	}
	var formats, groups, bits [2]int
	var parts []*mlx.Array
	for i, b := range []*bank{e.gateUp, e.down} {
		formats[i], groups[i], bits[i] = b.weight.packing()
		parts = append(parts, b.weight.present()...)
	}
	return mlx.GatedExperts(x, weights, chosen, parts, formats[:], groups[:], bits[:], e.gelu, s.X, s.Gate)
}

// sortedFrom is the number of picks from which a GPU does better with those of one expert side by side. On a CPU the kernel
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
	h := e.gateUp.apply(x, nil, flat, true)
	if e.gelu {
		h = mlx.GEGLUTanh(h, nil)
	} else {
		h = mlx.SwiGLU(h, nil)
	}
	h = e.down.apply(h, nil, flat, true)
	return mlx.Reshape(mlx.Take(h, back, 0), rows, k, 1, -1)
}

// TopSoftmax chooses the k experts of each row with the highest scores [T, experts], and weighs them by the softmax over all
// experts, or, where they are made to sum to 1, over those chosen: float32 and uint32 [T, k].
func TopSoftmax(scores *mlx.Array, k int, sumToOne bool) (weights, chosen *mlx.Array) {
	both := mlx.ChooseExperts(scores, nil, k, 1, 1, false, sumToOne, 1)
	return both[0], both[1]
}

// bank is matrices [n, out, in] of which a row meets some.
type bank struct {
	weight *Tensor
	turned *mlx.Array // of plain weights: [experts, in, out], over the same memory
}

func newBank(w *Weights, name string, experts, out, in int) *bank {
	t := w.Matrix(name, experts, out, in)
	w.noFactor(name, t)
	return bankOf(w, t)
}

func bankOf(w *Weights, t *Tensor) *bank {
	b := &bank{weight: t}
	if t != nil && t.Packed == nil {
		b.turned = w.Constant(mlx.SwapAxes(t.Array, -1, -2))
	}
	return b
}

// apply multiplies rows x [..., 1, in], picked by index of those before the last two axes, with the matrices of experts.
// Without rows, x has one for each expert picked, which then must be sorted.
func (b *bank) apply(x, rows, experts *mlx.Array, sorted bool) *mlx.Array {
	if p := b.weight.Packed; p != nil {
		return mlx.GatherQMM(x, b.weight.Array, p.Scales, p.Biases, rows, experts, true, p.Group, p.Bits, p.Mode, sorted)
	}
	return mlx.GatherMM(x, b.turned, rows, experts, sorted)
}
