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

// Apply gives x@w.T + bias for each of the layers.
func (l *Layers) Apply(x *Array) []*Array {
	if l.handle == nil {
		panic(&Error{Message: "Layers: they were freed"})
	}
	x.check("Layers")
	l.t.frame.reset()
	l.t.must(prefix("Layers", cLayersApply(l.handle, x.handle, l.t.frame)))
	outs := l.t.frame.results()
	list := make([]*Array, len(outs))
	for i := range outs {
		list[i] = l.t.adopt(&outs[i])
	}
	return list
}

// Free lets go of the arrays. Call it inside Do.
func (l *Layers) Free() {
	if l.handle != nil {
		cLayersFree(l.handle)
		l.handle = nil
	}
}
