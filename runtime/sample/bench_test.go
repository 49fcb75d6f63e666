package sample

import (
	"fmt"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
)

// BenchmarkSampling measures sampling from logits that are about as decided as those of a model.
func BenchmarkSampling(b *testing.B) {
	const vocab = 1 << 18
	history := make([]int32, 64)
	for i := range history {
		history[i] = int32(i * 7)
	}
	half := make([]uint32, vocab/32)
	for i := range half {
		half[i] = 0x5555_5555
	}
	common := runtime.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9}
	penalized := common
	penalized.RepeatPenalty, penalized.RepeatLastN = 1.1, 64
	for _, test := range []struct {
		name string
		runtime.Sampling
		masks [][]uint32
		logs  int
	}{
		{"greedy", runtime.Sampling{}, nil, -1},
		{"greedy, masked", runtime.Sampling{}, [][]uint32{half}, -1},
		{"top_k 40, top_p 0.9", common, nil, -1},
		{"top_k 40, top_p 0.9, masked", common, [][]uint32{half}, -1},
		{"top_k 40, top_p 0.9, penalties", penalized, nil, -1},
		{"top_k 40, top_p 0.9, 5 log-probabilities", common, nil, 5},
		{"temperature 1", runtime.Sampling{Temperature: 1}, nil, -1},
		{"top_p 0.9", runtime.Sampling{Temperature: 1, TopP: 0.9}, nil, -1},
		{"min_p 0.05", runtime.Sampling{Temperature: 1, MinP: 0.05}, nil, -1},
	} {
		for _, rows := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/rows %d", test.name, rows), func(b *testing.B) {
				mlxtest.Do(b, func(e *mlx.Thread) {
					logits := mlx.AsType(mlx.MultiplyScalar(mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, rows, vocab), 5),
						mlx.BFloat16)
					mlx.Eval(logits)
					requests := make([]Request, rows)
					for i := range requests {
						requests[i] = Request{Sampler: &Sampler{sampling: test.Sampling, seed: uint64(i), history: history},
							Masks: test.masks, TopLogProbs: test.logs}
					}
					for b.Loop() {
						e.Scope(func() { decide(logits, requests...) })
					}
				})
			})
		}
	}
}
