package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// typicalSet is the definition of Meister et al., "Locally Typical Sampling", as transformers' TypicalLogitsWarper
// computes it: of the tokens in the order of their distance to the entropy, the first ones whose probabilities reach
// the mass.
func typicalSet(p []float64, mass float64) []bool {
	entropy := 0.0
	for _, x := range p {
		if x > 0 {
			entropy -= x * math.Log(x)
		}
	}
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	distance := func(i int) float64 { return math.Abs(-math.Log(p[i]) - entropy) }
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := distance(a), distance(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	keep, sum := make([]bool, len(p)), 0.0
	for _, i := range order {
		if sum >= mass {
			break
		}
		keep[i] = true
		sum += p[i]
	}
	return keep
}

func TestTypical(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		n, mass := 2+random.IntN(60), 0.02+0.96*random.Float64()
		p, sum := make([]float64, n), 0.0
		for i := range p {
			if i == 0 || random.IntN(5) > 0 { // others are impossible
				p[i] = math.Exp(3 * random.NormFloat64())
			}
			sum += p[i]
		}
		probabilities := make([]float32, n)
		for i := range p {
			p[i] /= sum
			probabilities[i] = float32(p[i])
		}
		want, total := typicalSet(p, mass), 0.0
		for i := range p {
			if want[i] {
				total += p[i]
			}
		}
		mlxtest.Do(t, func(e *mlx.Thread) {
			e.Scope(func() {
				limit := mlx.FromSlice(e, []float32{float32(mass)}, 1, 1)
				got := mlx.ToSlice[float32](typical(mlx.FromSlice(e, probabilities, 1, n), limit))
				for i := range p {
					expected := 0.0
					if want[i] {
						expected = p[i] / total
					}
					if math.Abs(float64(got[i])-expected) > 1e-5 {
						t.Errorf("mass %v of %v: %v, want %v at %d", mass, p, got[i], expected, i)
					}
				}
			})
		})
	}
}
