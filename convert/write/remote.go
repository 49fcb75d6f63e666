package write

import (
	"slices"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
)

// order returns the tensors in the order in which they are written: the largest first, or, if they come over a network,
// as they are in their files, so that files are read from begin to end. It announces what will be read.
func (w *writer) order() []*plan.Tensor {
	order := largestFirst(w.plan.Tensors)
	remote := func(t *plan.Tensor) bool {
		return slices.ContainsFunc(t.Sources, func(s plan.Source) bool { return s.Tensor.Remote() })
	}
	w.factors.expect(slices.DeleteFunc(slices.Clone(order), w.hasBlob))
	if !slices.ContainsFunc(order, remote) {
		together(order)
		return order
	}
	slices.SortStableFunc(order, func(a, b *plan.Tensor) int {
		return source.ByPlace(*a.Sources[0].Tensor, *b.Sources[0].Tensor)
	})
	var read []source.Tensor
	for _, t := range order {
		if w.hasBlob(t) {
			continue
		}
		for _, s := range t.Sources {
			read = append(read, *s.Tensor)
		}
	}
	source.Expect(read, true)
	return order
}

// hasBlob reports whether the store or an interrupted run has a tensor's blob.
func (w *writer) hasBlob(t *plan.Tensor) bool {
	_, _, done := w.ingest.Lookup(blobName(manifest.KindTensor, t.Name))
	return done || t.Digest != ""
}

// sources lists the source tensors of all tensors.
func (w *writer) sources() []source.Tensor {
	var out []source.Tensor
	for _, t := range w.plan.Tensors {
		for _, s := range t.Sources {
			out = append(out, *s.Tensor)
		}
	}
	return out
}
