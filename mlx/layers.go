package mlx

import "unsafe"

// Layers are linear layers that share an input, made ready once: what LinearLayers does with all their arrays each time
// they do with x alone. They hold the arrays that they were made of until Free.
type Layers struct {
	t      *Thread
	handle unsafe.Pointer
}

// NewLayers takes the arguments of LinearLayers without x, parts not empty. It computes them. Call it inside Do.
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

// Activation is what a gate goes through.
type Activation int

// The activations, in the order of the bridge's.
const (
	SigmoidActivation Activation = iota
	SiLUActivation
	GELUActivation
	GELUTanhActivation
)

// What is done to the input on the way, in the order of the bridge's.
const (
	nothingBefore = iota
	normBefore
	gateBefore
)

// Apply gives x@w.T + bias for each of the layers.
func (l *Layers) Apply(x *Array) []*Array {
	return l.after(nothingBefore, x, nil, nil, 0, 0, false, false)
}

// ApplyNormed gives x+y, and what Apply gives of that, normalized as AddRMSNorm does. Without y the sum is x. Of a few rows
// on a CPU it is one operation.
func (l *Layers) ApplyNormed(x, y, weight *Array, eps float64, plusOne bool) (sum *Array, outs []*Array) {
	outs = l.after(normBefore, x, y, weight, 0, eps, plusOne, false)
	if y == nil {
		return x, outs
	}
	return outs[0], outs[1:]
}

// ApplyNormedKept is ApplyNormed, and gives the normalized sum too.
func (l *Layers) ApplyNormedKept(x, y, weight *Array, eps float64, plusOne bool) (sum, normed *Array, outs []*Array) {
	outs = l.after(normBefore, x, y, weight, 0, eps, plusOne, true)
	if y == nil {
		return x, outs[0], outs[1:]
	}
	return outs[0], outs[1], outs[2:]
}

// ApplyGated is Apply of act(gate)*up. Of a few rows on a CPU it is one operation.
func (l *Layers) ApplyGated(act Activation, gate, up *Array) []*Array {
	return l.after(gateBefore, gate, up, nil, act, 0, false, false)
}

func (l *Layers) after(kind int, x, second, weight *Array, act Activation, eps float64, plusOne, keep bool) []*Array {
	if l.handle == nil {
		panic(&Error{Message: "Layers: they were freed"})
	}
	c := l.t.begin(opLinearLayers)
	c.array(x)
	c.optional(second)
	c.optional(weight)
	c.int(kind)
	c.int(int(act))
	c.bool(plusOne)
	c.bool(keep)
	c.real(eps)
	l.t.must(prefix("Layers", cLayersApply(l.handle, l.t.frame)))
	return l.t.adoptAll(l.t.frame.results())
}

// Free lets go of the arrays. Call it inside Do.
func (l *Layers) Free() {
	if l.handle != nil {
		cLayersFree(l.handle)
		l.handle = nil
	}
}
