package runtime

import (
	"errors"
	"fmt"
	"math"
)

// Sampling says how a token is sampled from logits: bias and penalties, then temperature, top_k, top_p and min_p. The
// zero value is greedy.
type Sampling struct {
	Temperature      float64 // <= 0: greedy
	TopK             int     // <= 0: off
	TopP             float64 // <= 0 or >= 1: off
	MinP             float64 // <= 0 or > 1: off
	RepeatPenalty    float64 // <= 0 or 1: off
	PresencePenalty  float64
	FrequencyPenalty float64
	// number of last tokens, including the prompt's, that penalties apply to; 0: off, negative: all
	RepeatLastN int
	LogitBias   map[int32]float64 // added to the logits of tokens, before penalties
	Seed        *int64            // nil or negative: a random one for each request
	Suppress    []int32           // tokens that are never sampled
}

// ErrSampling reports invalid sampling parameters.
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

// maxBias keeps sums of logits and biases finite.
const maxBias = 1e6

// penalizes reports whether the next token depends on the history.
func (s *Sampling) penalizes() bool {
	repeats := s.RepeatPenalty > 0 && s.RepeatPenalty != 1
	return s.RepeatLastN != 0 && (repeats || s.PresencePenalty != 0 || s.FrequencyPenalty != 0)
}

// sampler is the sampling state of one request.
type sampler struct {
	Sampling
	seed     uint64
	history  []int32 // prompt and generated tokens
	position uint64  // of the next token among the generated ones
}

// Streams of uniform variates of a request. A variate depends only on the seed, the stream and the token's position,
// not on the other requests in the batch or on whether the token was drafted.
const (
	drawToken  uint64 = 0                  // draws a token
	drawAccept uint64 = 0x6a09e667f3bcc908 // accepts or rejects a drawn draft
	drawDraft  uint64 = 0xbb67ae8584caa73b // draws a draft
)

// uniform returns a uniform variate in (0, 1) of 23 bits. float32 represents it exactly, and its product with a sum of
// probabilities rounds to less than the sum, which draw needs.
func (s *sampler) uniform(stream, place uint64) float32 {
	return (float32(splitMix64(s.seed^stream, place)>>41) + 0.5) / (1 << 23)
}

// splitMix64 returns output i of the generator SplitMix64 with the given seed.
// https://doi.org/10.1145/2714064.2660195
func splitMix64(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
