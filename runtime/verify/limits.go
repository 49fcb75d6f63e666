package verify

import "github.com/ingotml/ingot/mlx"

// Limits are what a comparison with a reference has to meet.
type Limits struct {
	MaxKL   float64 // mean divergence, in nats
	MinTop1 float64 // share of equal top tokens
}

// LimitsFor returns the limits of a model that computes in a type, against a float32 reference of the same weights.
// bfloat16 keeps 8 bits of each activation, so that rounding alone moves the logits: transformers in bfloat16 is 0.0024
// nats from its own float32 with SmolLM2-135M, where ingot is 0.0011. float16 keeps 11 bits, which the limits of
// float32 cover.
func LimitsFor(compute mlx.DType) Limits {
	if compute == mlx.BFloat16 {
		return Limits{MaxKL: 5e-3, MinTop1: 0.95}
	}
	return Limits{MaxKL: 1e-3, MinTop1: 0.99}
}
