package server_test

import (
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/divide"
	"github.com/ingotml/ingot/server"
)

// The memory of a divided model counts what rank 0 has of it, which in a pipeline is more than an even share: also the
// embedding and the head.
func TestDividedWeights(t *testing.T) {
	var whole, tensors int64
	bytes := map[divide.Mode]int64{}
	for _, mode := range []divide.Mode{"", divide.Tensor, divide.Pipeline} {
		f := serve(t, func(o *server.Options) {
			if o.Parallel = mode; mode != "" {
				o.Ranks = func(*store.Entry) int { return 4 }
			}
		})
		m, err := f.Find(t.Context(), "plain")
		if err != nil {
			t.Fatal(err)
		}
		bytes[mode] = f.WeightBytes(m)
		whole, tensors = 0, 0
		for _, l := range m.Entry.Image.Layers {
			whole += l.Size
		}
		for _, n := range divide.Sizes(m.Entry.Image) {
			tensors += n
		}
	}
	files := whole - tensors
	if bytes[""] != whole {
		t.Errorf("a model that is not divided counts %d bytes of %d", bytes[""], whole)
	}
	if n := bytes[divide.Tensor] - files; n < tensors/4 || n > tensors*35/100 {
		t.Errorf("a quarter of each tensor is %d bytes of %d", n, tensors)
	}
	// The embedding is about half as large as a layer. Of five layers rank 0 has one.
	if n := bytes[divide.Pipeline] - files; n < tensors*28/100 || n > tensors*31/100 {
		t.Errorf("rank 0 of a pipeline has %d bytes of %d", n, tensors)
	}
}
