package sample

import (
	"math/rand/v2"

	"github.com/ingotml/ingot/runtime"
)

// Sampler is the sampling state of one request.
type Sampler struct {
	sampling runtime.Sampling
	seed     uint64
	history  []int32 // prompt and generated tokens
	position uint64  // of the next token among the generated ones
}

// New returns the state of a request with the given prompt, which the caller must not change.
func New(s runtime.Sampling, prompt []int32) *Sampler {
	r := &Sampler{sampling: s, seed: rand.Uint64(), history: prompt}
	if s.Seed != nil && *s.Seed >= 0 {
		r.seed = uint64(*s.Seed)
	}
	return r
}

// Add appends a sampled token.
func (s *Sampler) Add(token int32) { s.history = append(s.history, token) }

// AddForced appends a token that was not sampled.
func (s *Sampler) AddForced(token int32) {
	s.Add(token)
	s.position++
}

// Skip leaves out the variate of a token that is not sampled.
func (s *Sampler) Skip() { s.position++ }

// Rewind sets the number of generated tokens, so that a discarded sample is drawn again with the same variates.
func (s *Sampler) Rewind(generated int) { s.position = uint64(generated) }

// DrawsDrafts reports whether a request's drafts are drawn from the draft's distribution; otherwise the most likely
// tokens are drafted. Drawn drafts are accepted more often. However, the generated tokens then depend on the draft
// depth, which a request with a seed must not show.
func (s *Sampler) DrawsDrafts() bool {
	return s.sampling.Temperature > 0 && (s.sampling.Seed == nil || *s.sampling.Seed < 0)
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
func (s *Sampler) uniform(stream, place uint64) float32 {
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
