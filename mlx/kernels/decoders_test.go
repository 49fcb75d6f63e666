package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// What some decoders need, against float64: the negative side of xIELU, queries that grow with their position, and
// products of each row with the same weights or with a number of its own.
func TestDecoderKernels(t *testing.T) {
	const rows, heads, dim, limit, beta, context, shift = 5, 3, 33, -1e-6, 0.5, 16, 1
	positions := []int32{0, 15, 16, 47, 100000}
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(5, 5))
		for _, d := range floatTypes {
			x, w := normalRows(e, r, d, 3, rows, heads, dim), normalRows(e, r, d, 1, heads, dim)
			own := normalRows(e, r, d, 1, rows, heads, 1)
			tail, grown, product := make([]float64, len(x.v)), make([]float64, len(x.v)), make([]float64, len(x.v))
			shifted, scaled := make([]float64, len(x.v)), make([]float64, len(x.v))
			for i, v := range x.v {
				if v <= 0 {
					tail[i] = math.Expm1(min(v, limit)) - v
				}
				grown[i] = v * (1 + beta*math.Log1p(float64(positions[i/(heads*dim)]/context)))
				shifted[i] = v * (1 + beta*math.Log1p(float64((int(positions[i/(heads*dim)])+shift)/context)))
				product[i] = v * w.v[i%(heads*dim)]
				scaled[i] = v * own.v[i/dim]
			}
			near := func(list []float64, more float64) func(int) float64 {
				return func(i int) float64 { return max(more, math.Abs(list[i])) }
			}
			at := mlx.FromSlice(e, positions)
			for what, c := range map[string]struct {
				got  *mlx.Array
				want []float64
				near func(int) float64
			}{
				// e^x - 1 loses what e^x has before the point.
				"ExpTail":           {mlx.ExpTail(x.Array, limit), tail, near(tail, 1)},
				"GrowRows":          {mlx.GrowRows(x.Array, at, beta, context, 0), grown, near(grown, 0)},
				"GrowRows from one": {mlx.GrowRows(x.Array, at, beta, context, shift), shifted, near(shifted, 0)},
				"Multiply by row":   {mlx.Multiply(x.Array, own.Array), scaled, near(scaled, 0)},
				"Multiply":          {mlx.Multiply(x.Array, w.Array), product, near(product, 0)},
			} {
				steps := 4.0
				if strings.HasPrefix(what, "GrowRows") && d != mlx.Float32 {
					steps = 0x1p16 // the factor is rounded to the type of the rows
				}
				wantClose(t, fmt.Sprintf("%s of %v", what, d), c.got, c.want, steps, c.near)
			}
		}
	})
}
