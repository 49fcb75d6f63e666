package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// Sampling is how a token is chosen from scores: penalties, then temperature, top_k, top_p, min_p. The zero value is
// greedy.
type Sampling struct {
	Temperature      float64 // <= 0: the highest score
	TopK             int     // <= 0: off
	TopP             float64 // <= 0 or >= 1: off
	MinP             float64 // <= 0 or > 1: off
	RepeatPenalty    float64 // <= 0 or 1: off
	PresencePenalty  float64
	FrequencyPenalty float64
	RepeatLastN      int     // tokens that penalties look at, the prompt included; 0: penalties off, negative: all
	Seed             *int64  // nil or negative: a new one for each request
	Suppress         []int32 // tokens that are never chosen
}

// ErrSampling says that sampling parameters make no sense.
var ErrSampling = errors.New("bad sampling parameters")

func (s Sampling) check() error {
	for name, v := range map[string]float64{
		"temperature": s.Temperature, "top_p": s.TopP, "min_p": s.MinP, "repeat_penalty": s.RepeatPenalty,
		"presence_penalty": s.PresencePenalty, "frequency_penalty": s.FrequencyPenalty,
	} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v: %w", name, v, ErrSampling)
		}
	}
	return nil
}

// sampler chooses the tokens of one request.
type sampler struct {
	Sampling
	seed    uint64
	history []int32 // prompt and chosen tokens
	drawn   uint64
}

// next chooses a token from scores [1, vocab]; it gives an integer array of one element, not evaluated. It runs on the
// engine's thread.
func (s *sampler) next(scores *mlx.Array) *mlx.Array {
	scores = mlx.AsType(scores, mlx.Float32)
	scores = s.suppress(s.penalize(scores))
	if s.Temperature <= 0 {
		return mlx.ArgMax(scores, -1, false)
	}
	// Draw i of a request depends on (seed, i) only, not on what ran beside it.
	key := mlx.RandomKey(scores.Thread(), splitMix64(s.seed, s.drawn))
	s.drawn++
	scores = mlx.MultiplyScalar(scores, 1/s.Temperature)
	var ids *mlx.Array // of the candidates, in descending order of score; nil for the whole vocabulary in its own
	if vocab := scores.Dim(-1); s.TopK > 0 && s.TopK < vocab {
		best := mlx.Largest(scores, s.TopK)
		scores, ids = best[0], best[1]
	}
	if s.TopP > 0 && s.TopP < 1 {
		scores, ids = nucleus(scores, ids, s.TopP)
	}
	if s.MinP > 0 && s.MinP <= 1 {
		floor := mlx.AddScalar(mlx.Max(scores, true, -1), math.Log(s.MinP))
		scores = masked(scores, mlx.GreaterEqual(scores, floor))
	}
	chosen := mlx.Categorical(scores, key, -1)
	if ids == nil {
		return chosen
	}
	return mlx.Squeeze(mlx.TakeAlongAxis(ids, mlx.ExpandDims(chosen, -1), -1), -1)
}

// nucleus keeps the most likely candidates, as long as those before one sum to less than p. Where there are ids, the
// candidates come in descending order; else they are the whole vocabulary.
func nucleus(scores, ids *mlx.Array, p float64) (kept, keptIDs *mlx.Array) {
	if ids == nil {
		ids = mlx.ArgSort(mlx.Negative(scores), -1)
		scores = mlx.TakeAlongAxis(scores, ids, -1)
	}
	before := mlx.CumSum(mlx.Softmax(scores, true, -1), -1, false, false)
	limit := mlx.Scalar(scores.Thread(), float32(p))
	return masked(scores, mlx.Less(before, limit)), ids
}

// masked makes what is not kept impossible.
func masked(scores, keep *mlx.Array) *mlx.Array {
	return mlx.Where(keep, scores, mlx.Scalar(scores.Thread(), float32(math.Inf(-1))))
}

// penalizes tells whether the next choice depends on the history.
func (s *sampler) penalizes() bool {
	repeats := s.RepeatPenalty > 0 && s.RepeatPenalty != 1
	return s.RepeatLastN != 0 && (repeats || s.PresencePenalty != 0 || s.FrequencyPenalty != 0)
}

// penalize lowers the scores of recent tokens.
func (s *sampler) penalize(scores *mlx.Array) *mlx.Array {
	if !s.penalizes() {
		return scores
	}
	repeat := s.RepeatPenalty
	if repeat <= 0 {
		repeat = 1
	}
	recent := s.history
	if n := len(recent); s.RepeatLastN > 0 && n > s.RepeatLastN {
		recent = recent[n-s.RepeatLastN:]
	}
	if len(recent) == 0 {
		return scores
	}
	var ids []int32
	count := map[int32]int{}
	for _, id := range recent {
		if count[id]++; count[id] == 1 {
			ids = append(ids, id)
		}
	}
	less := make([]float32, len(ids))
	for i, id := range ids {
		less[i] = float32(s.PresencePenalty + s.FrequencyPenalty*float64(count[id]))
	}
	t := scores.Thread()
	at := mlx.FromSlice(t, ids, 1, len(ids))
	old := mlx.TakeAlongAxis(scores, at, -1)
	zero := mlx.Scalar(t, float32(0))
	now := mlx.Where(mlx.Less(old, zero), mlx.MultiplyScalar(old, repeat), mlx.MultiplyScalar(old, 1/repeat))
	now = mlx.Subtract(now, mlx.FromSlice(t, less, 1, len(less)))
	return mlx.PutAlongAxis(scores, at, now, -1)
}

// suppress makes tokens impossible that are never to be chosen; those outside the vocabulary are so already.
func (s *sampler) suppress(scores *mlx.Array) *mlx.Array {
	vocab := scores.Dim(-1)
	ids := slices.DeleteFunc(slices.Clone(s.Suppress), func(id int32) bool { return id < 0 || int(id) >= vocab })
	if len(ids) == 0 {
		return scores
	}
	t := scores.Thread()
	never := slices.Repeat([]float32{float32(math.Inf(-1))}, len(ids))
	return mlx.PutAlongAxis(scores, mlx.FromSlice(t, ids, 1, len(ids)), mlx.FromSlice(t, never, 1, len(ids)), -1)
}

// splitMix64 is the i-th output of the generator of that name seeded with seed.
// https://doi.org/10.1145/2714064.2660195
func splitMix64(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
