package main

import (
	"context"
	"time"

	"github.com/ingotml/ingot/mlx"
)

// The size of a published model's experts: int4 matrices, in sum far larger than the caches.
const (
	gatheredExperts = 64
	gatheredOut     = 2048
	gatheredIn      = 1024
	gatheredBanks   = 4
)

// gatheredJSON has medians in GB of weights per second, by the number of experts read. Each row uses its own expert.
type gatheredJSON struct {
	One       float64 `json:"1"`
	Eight     float64 `json:"8"`
	SixtyFour float64 `json:"64"`
}

// gathered times gathered products with int4 weights, several per evaluation, like the layers of a model.
func (b *bench) gathered(ctx context.Context, c command) (any, error) {
	speeds := map[int]float64{}
	err := b.thread.Do(ctx, func() error {
		const group, bits = 64, 4
		var banks [][]*mlx.Array
		for i := range gatheredBanks {
			b.thread.Scope(func() {
				w := mlx.RandomNormal(mlx.RandomKey(b.thread, uint64(i)), mlx.BFloat16, gatheredExperts, gatheredOut, gatheredIn)
				parts := mlx.Quantize(w, group, bits, mlx.Affine, nil)
				mlx.Eval(parts...)
				mlx.Keep(parts...)
				banks = append(banks, parts)
			})
		}
		defer func() {
			for _, parts := range banks {
				mlx.Free(parts...)
			}
		}()
		bytes := 0
		for _, p := range banks[0] {
			bytes += p.Bytes() / gatheredExperts
		}
		for _, n := range []int{1, 8, 64} {
			calls := max(gatheredBanks, 2*gatheredExperts/n)
			var times []float64
			for round := range c.Rounds + 1 { // the first is a warm-up
				if err := ctx.Err(); err != nil {
					return err
				}
				b.thread.Scope(func() {
					x := mlx.RandomNormal(mlx.RandomKey(b.thread, 9), mlx.BFloat16, n, 1, gatheredIn)
					mlx.Eval(x)
					var outs []*mlx.Array
					for i := range calls {
						chosen := make([]uint32, n)
						for j := range chosen {
							chosen[j] = uint32((i*n + j*5 + round) % gatheredExperts) // 5 and 64 are coprime, so all differ
						}
						w := banks[i%gatheredBanks]
						outs = append(outs, mlx.GatherQMM(x, w[0], w[1], w[2], nil, mlx.FromSlice(b.thread, chosen), true, group, bits,
							mlx.Affine, false))
					}
					begun := time.Now()
					mlx.Eval(outs...)
					times = append(times, time.Since(begun).Seconds())
				})
			}
			speeds[n] = float64(bytes*n*calls) / median(times[1:]) / 1e9
		}
		return nil
	})
	return gatheredJSON{speeds[1], speeds[8], speeds[64]}, err
}
