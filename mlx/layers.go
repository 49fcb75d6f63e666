package mlx

import "unsafe"

// Layers is a set of linear layers that share an input, prepared once: LinearLayers passes all of their arrays on each
// call, Layers passes only x. It holds the arrays until Free.
type Layers struct {
	// Wide makes all results float32: sums that are not rounded to the type of x.
	Wide bool

	t      *Thread
	handle unsafe.Pointer
}

// NewLayers takes the arguments of LinearLayers without x, and evaluates the arrays. parts must not be empty. Call it
// inside Do.
func NewLayers(parts []*Array, joined bool, formats, groups, bits, biased, heads []int) *Layers {
	t := threadOf(opLinearLayers, parts...)
	c := t.begin(opLinearLayers)
	c.arrays(parts)
	c.bool(joined)
	for _, list := range [][]int{formats, groups, bits, biased, heads} {
		c.ints(list)
	}
	p, failed := cLayersNew(t.frame)
	t.must(prefix("NewLayers", failed))
	return &Layers{t: t, handle: p}
}

// Activation is the activation function of a gate.
type Activation int

// The activations, in the order of the bridge's codes.
const (
	SigmoidActivation Activation = iota
	SiLUActivation
	GELUActivation
	GELUTanhActivation
)

// What [ChooseExperts] makes of scores, in the order of the bridge's codes.
const (
	SoftmaxOfScores = iota
	SigmoidsOfScores
	SqrtSoftplusOfScores
)

// The prologues: operations fused before the layers, in the order of the bridge's codes.
const (
	noPrologue = iota
	normPrologue
	gatePrologue
)

// Apply returns x@w.T + bias for each of the layers.
func (l *Layers) Apply(x *Array) []*Array {
	return l.apply(noPrologue, x, nil, nil, 0, 0, false, false)
}

// ApplyNormed returns x+y, and Apply of that sum normalized as by AddRMSNorm. If y is nil the sum is x. For small
// batches on a CPU it is one fused operation.
func (l *Layers) ApplyNormed(x, y, weight *Array, eps float64, plusOne bool) (sum *Array, outs []*Array) {
	outs = l.apply(normPrologue, x, y, weight, 0, eps, plusOne, false)
	if y == nil {
		return x, outs
	}
	return outs[0], outs[1:]
}

// ApplyNormedKept is ApplyNormed and also returns the normalized sum.
func (l *Layers) ApplyNormedKept(x, y, weight *Array, eps float64, plusOne bool) (sum, normed *Array, outs []*Array) {
	outs = l.apply(normPrologue, x, y, weight, 0, eps, plusOne, true)
	if y == nil {
		return x, outs[0], outs[1:]
	}
	return outs[0], outs[1], outs[2:]
}

// ApplyGated is Apply of act(gate)*up. For small batches on a CPU it is one fused operation.
func (l *Layers) ApplyGated(act Activation, gate, up *Array) []*Array {
	return l.apply(gatePrologue, gate, up, nil, act, 0, false, false)
}

func (l *Layers) apply(
	prologue int, x, second, weight *Array, act Activation, eps float64, plusOne, keep bool,
) []*Array {
	if l.handle == nil {
		panic(&Error{Message: "Layers: they were freed"})
	}
	c := l.t.begin(opLinearLayers)
	c.array(x)
	c.optional(second)
	c.optional(weight)
	c.int(prologue)
	c.int(int(act))
	c.bool(plusOne)
	c.bool(keep)
	c.bool(l.Wide)
	c.real(eps)
	l.t.must(prefix("Layers", cLayersApply(l.handle, l.t.frame)))
	return l.t.adoptAll(l.t.frame.results())
}

// Free releases the arrays. Call it inside Do.
func (l *Layers) Free() {
	if l.handle != nil {
		cLayersFree(l.handle)
		l.handle = nil
	}
}
