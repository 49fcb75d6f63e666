package embed

import (
	"math"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch/pooling"
)

// Rows arrive in chunks, and a reset discards them.
func TestPoolState(t *testing.T) {
	rows := []float32{3, 4, 1, -8, 5, 1} // three rows of two
	for mode, want := range map[pooling.Mode][]float64{
		pooling.First: {3, 4}, pooling.Last: {5, 1}, pooling.Max: {5, 4}, pooling.Mean: {3, -1}, pooling.MeanSqrt: {9, -3},
		pooling.Weighted: {20, -9},
	} {
		for _, cut := range []int{1, 2, 3} {
			p := &Vector{modes: []pooling.Mode{mode}}
			p.Add([]float32{100, 100}, 2)
			p.Reset()
			p.Add(rows[:2*cut], 2)
			if cut < 3 {
				p.Add(rows[2*cut:], 2)
			}
			got, err := p.Elements(0)
			length := math.Hypot(want[0], want[1])
			if err != nil || math.Abs(float64(got[0])-want[0]/length) > 1e-6 || math.Abs(float64(got[1])-want[1]/length) > 1e-6 {
				t.Errorf("%s cut at %d: %v, %v; want %v of length 1", mode, cut, got, err, want)
			}
		}
	}
	p := &Vector{modes: []pooling.Mode{pooling.First, pooling.Last}}
	p.Add([]float32{0, 3, 4, 9}, 2)
	if got, err := p.Elements(3); err != nil || !slices.Equal(got, []float32{0, 0.6, 0.8}) {
		t.Errorf("three elements of two vectors: %v, %v", got, err)
	}
	p.Reset()
	p.Add([]float32{float32(math.NaN()), 1}, 2)
	if _, err := p.Elements(0); err == nil {
		t.Error("a vector that is not finite is given")
	}
	p.Reset()
	p.Add([]float32{0, 0}, 2)
	if got, err := p.Elements(0); err != nil || !slices.Equal(got, []float32{0, 0, 0, 0}) {
		t.Errorf("a vector without a length: %v, %v", got, err)
	}
}
