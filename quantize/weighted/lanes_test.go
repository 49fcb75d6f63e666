package weighted

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The assembly computes what the Go functions do, to the bit.
func TestVectors(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = r.NormFloat64()
		}
		return out
	}
	for n := 4; n <= 132; n += 4 {
		x, d := random(n), random(n)
		var got, want [3]lanes
		sumsAVX2(&got, &x[0], &d[0], n, -2, 3.7, 15)
		sumsGo(&want, x, d, -2, 3.7, 15)
		if got != want {
			t.Errorf("sums of %d columns: %v, want %v", n, got, want)
		}
		var near, far lanes
		distanceAVX2(&near, &x[0], &d[0], n, -2, 0.27, 1/0.27, 15)
		distanceGo(&far, x, d, -2, 0.27, 1/0.27, 15)
		if near != far {
			t.Errorf("distance of %d columns: %v, want %v", n, near, far)
		}
		for _, rows := range []int{1, 3, 8} {
			u, e, later := random(rows*(n+5)), random(rows), random(n)
			other := slices.Clone(later)
			moveAVX2(&later[0], n, &u[0], n+5, &e[0], rows)
			moveGo(other, u, n+5, e)
			if !slices.Equal(later, other) {
				t.Errorf("move of %d rows and %d columns differs", rows, n)
			}
		}
	}
}
