package gguf

import (
	"cmp"
	"slices"

	"github.com/ingotml/ingot/quantize/ggml"
)

// PrismML published models in Q2_0 with a scale for 128 elements before llama.cpp gave the number to blocks of 64.
// Other forks have had types of their own with it. The distances between tensors tell them apart.

// disputed corrects the types of tensors whose number is that of Q2_0. Their offsets are relative to the data region,
// which has a number of bytes.
func (p *parser) disputed(tensors []Tensor, alignment, data int64) {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	var early []*Tensor
	var odd *Tensor // the first that does not fit
	var room int64  // for odd
	large := true   // all fit blocks of 128
	for i, t := range order {
		if t.Type != ggml.Q2_0 {
			continue
		}
		end := data
		if i+1 < len(order) {
			end = order[i+1].Offset
		}
		between := end - t.Offset
		if early = append(early, t); i+1 == len(order) && between < sizeAs(t, ggml.PQ2_0) {
			continue // the file is cut off, which says nothing about the type
		}
		if odd == nil && !fits(t.Size, between, alignment) {
			odd, room = t, between
		}
		whole := len(t.Shape) > 0 && t.Shape[len(t.Shape)-1]%128 == 0
		large = large && whole && fits(sizeAs(t, ggml.PQ2_0), between, alignment)
	}
	switch {
	case odd == nil:
	case large:
		for _, t := range early {
			t.Size, t.Type = sizeAs(t, ggml.PQ2_0), ggml.PQ2_0
		}
	case room >= 0 && room < odd.Size:
		p.fail("tensor %s has %d bytes, but %v, type %d, takes %d for its shape: another program gave the number to a type "+
			"of its own, or the file is damaged; %s", odd.Name, room, ggml.Q2_0, uint32(ggml.Q2_0), odd.Size, useOther)
	}
}

// fits reports whether a tensor of a size and the padding behind it fill a distance.
func fits(size, between, alignment int64) bool { return size <= between && between < size+alignment }

// sizeAs returns the size of a tensor in another type with blocks of as many bits for an element, and a scale.
func sizeAs(t *Tensor, to ggml.Type) int64 {
	from, old := t.Type.Block()
	block, size := to.Block()
	return t.Size / int64(old) * int64(from) / int64(block) * int64(size)
}

// useOther is the remedy for types that cannot be read.
const useOther = "use a file of another type, such as Q4_K_M or Q8_0, or the model's unquantized checkpoint"
