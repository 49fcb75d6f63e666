package runtime

import (
	"errors"
	"fmt"
	"math"
)

// Sampling is how a token is chosen from scores: bias, penalties, then temperature, top_k, top_p, min_p. The zero value is
// greedy.
type Sampling struct {
	Temperature      float64 // <= 0: the highest score
	TopK             int     // <= 0: off
	TopP             float64 // <= 0 or >= 1: off
	MinP             float64 // <= 0 or > 1: off
	RepeatPenalty    float64 // <= 0 or 1: off
	PresencePenalty  float64
	FrequencyPenalty float64
	RepeatLastN      int               // tokens that penalties look at, the prompt included; 0: penalties off, negative: all
	LogitBias        map[int32]float64 // added to the scores of tokens, before penalties
	Seed             *int64            // nil or negative: a new one for each request
	Suppress         []int32           // tokens that are never chosen
}

// ErrSampling says that sampling parameters make no sense.
var ErrSampling = errors.New("bad sampling parameters")

func (s Sampling) check() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"temperature", s.Temperature}, {"top_p", s.TopP}, {"min_p", s.MinP}, {"repeat_penalty", s.RepeatPenalty},
		{"presence_penalty", s.PresencePenalty}, {"frequency_penalty", s.FrequencyPenalty},
	} {
		if math.IsNaN(p.value) || math.IsInf(p.value, 0) {
			return fmt.Errorf("%s is %v: %w", p.name, p.value, ErrSampling)
		}
	}
	for id, v := range s.LogitBias {
		if math.IsNaN(v) || math.Abs(v) > maxBias {
			return fmt.Errorf("logit_bias of token %d is %v: %w", id, v, ErrSampling)
		}
	}
	return nil
}

// mostBias keeps sums of scores and biases finite.
const maxBias = 1e6

// penalizes tells whether the next choice depends on the history.
func (s *Sampling) penalizes() bool {
	repeats := s.RepeatPenalty > 0 && s.RepeatPenalty != 1
	return s.RepeatLastN != 0 && (repeats || s.PresencePenalty != 0 || s.FrequencyPenalty != 0)
}

// sampler is how the tokens of one request are chosen, and from where it goes on.
type sampler struct {
	Sampling
	seed     uint64
	history  []int32 // prompt and chosen tokens
	position uint64  // the place of the next token among those that were chosen
}

// What a request draws numbers for: a stream each, of which the number of a token depends on (seed, place of the token) only,
// not on what ran beside it, and not on whether the token had been drafted.
const (
	drawToken  uint64 = 0                  // which token
	drawAccept uint64 = 0x6a09e667f3bcc908 // whether a drawn draft is kept
	drawDraft  uint64 = 0xbb67ae8584caa73b // which draft
)

// chance is a number in (0, 1), of 23 bits: float32 has it exactly, and its product with a sum is below the sum.
func (s *sampler) uniform(stream, place uint64) float32 {
	return (float32(splitMix64(s.seed^stream, place)>>41) + 0.5) / (1 << 23)
}

// splitMix64 is the i-th output of the generator of that name seeded with seed.
// https://doi.org/10.1145/2714064.2660195
func splitMix64(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
