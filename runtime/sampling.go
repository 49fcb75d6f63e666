package runtime

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Sampling says how a token is sampled from logits: bias and penalties, then temperature, top_k, typical_p, top_p and
// min_p. The zero value is greedy.
type Sampling struct {
	Temperature      float64 // <= 0: greedy
	TopK             int     // <= 0: off
	TypicalP         float64 // <= 0 or >= 1: off
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
var ErrSampling = fault.Register(errors.New("bad sampling parameters"), fault.Kind{
	Name: "runtime.ErrSampling", Means: "sampling parameters are invalid",
	Rank: fault.Part + 6, Status: fault.Invalid, Wire: "sampling",
})

// Check returns an error if a parameter is not finite or a bias too large.
func (s Sampling) Check() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"temperature", s.Temperature}, {"typical_p", s.TypicalP}, {"top_p", s.TopP}, {"min_p", s.MinP},
		{"repeat_penalty", s.RepeatPenalty}, {"presence_penalty", s.PresencePenalty},
		{"frequency_penalty", s.FrequencyPenalty},
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

// Penalizes reports whether the next token depends on the history.
func (s *Sampling) Penalizes() bool {
	repeats := s.RepeatPenalty > 0 && s.RepeatPenalty != 1
	return s.RepeatLastN != 0 && (repeats || s.PresencePenalty != 0 || s.FrequencyPenalty != 0)
}
