package modeltest

import (
	"cmp"
	"math"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/quantize"
)

// Limits are the largest mean divergences from the reference, in nats per position; 0 leaves the usual one. A checkpoint
// of few and random weights may need more than others of the same kind: where a router is nearly undecided, say.
type Limits struct {
	Int8   float64 // of weights at int8; usually 0.01
	Stored float64 // of computing in the type that the weights are stored in; usually 0.01
	KV8    float64 // of keys and values in 8 bits; usually 0.005
	KV4    float64 // and in 4; usually 0.3
}

// Of weights in other formats only that computing in the stored type does not go astray.
const maxNarrowKL = 0.1

func (l Limits) int8() float64   { return cmp.Or(l.Int8, 0.01) }
func (l Limits) stored() float64 { return cmp.Or(l.Stored, 0.01) }

// checkStored wants the reference's distributions of the model in the type of the stored weights.
func (c *Checkpoint) checkStored(t *testing.T) {
	t.Helper()
	m, _ := c.load(t, precision{})
	c.checkKL(t, c.chunked(t, m, 7, nil), c.Logits, c.Limits.stored())
}

// checkInt8 wants the reference's distributions of the model at int8, whatever way the tokens take.
func (c *Checkpoint) checkInt8(t *testing.T) {
	t.Helper()
	whole, m := c.checkPacked(t, quantize.Int8)
	c.checkKL(t, whole, c.Logits, c.Limits.int8())
	c.compare(t, c.packed(t, m), whole)
	c.compare(t, c.restored(t, m), whole)
}

// checkModes wants weights in the formats of other families, and at 4 bits, to compute what they do unpacked.
func (c *Checkpoint) checkModes(t *testing.T) {
	t.Helper()
	for _, format := range []quantize.Type{quantize.Int4, quantize.MXFP4, quantize.MXFP8, quantize.NVFP4} {
		c.asUnpacked(t, format)
	}
}

// checkPacked wants a model with weights in a format to compute what one does that has the same weights unpacked, whole and
// token by token. It gives the scores, and the model.
func (c *Checkpoint) checkPacked(t *testing.T, format quantize.Type) ([]float32, models.Model) {
	t.Helper()
	whole, m := c.asUnpacked(t, format)
	c.compare(t, c.chunked(t, m, 1, nil), whole)
	return whole, m
}

// asUnpacked is the first half of checkPacked.
func (c *Checkpoint) asUnpacked(t *testing.T, format quantize.Type) ([]float32, models.Model) {
	t.Helper()
	m, packed := c.load(t, precision{format: format, dtype: mlx.Float32})
	if packed == 0 && format.Group() <= 64 {
		t.Errorf("%s: no tensor is quantized", format)
	}
	unpacked, _ := c.load(t, precision{format: format, dtype: mlx.Float32, unpack: true})
	whole := c.chunked(t, m, len(c.Tokens), nil)
	c.compare(t, whole, c.chunked(t, unpacked, len(c.Tokens), nil))
	return whole, m
}

// Formats checks that the model runs with weights in every format, in float32 and in the type of what is not quantized.
func (c *Checkpoint) Formats(t *testing.T) {
	for _, format := range quantize.Types() {
		t.Run(format.String(), func(t *testing.T) {
			stored, _ := c.load(t, precision{format: format})
			if format.IsCast() {
				c.checkKL(t, c.chunked(t, stored, 7, nil), c.Logits, c.Limits.stored())
				return
			}
			whole, _ := c.checkPacked(t, format)
			c.checkKL(t, c.chunked(t, stored, 7, nil), whole, maxNarrowKL)
		})
	}
}

// checkKL wants distributions of which those of scores diverge by no more than most nats on average.
func (c *Checkpoint) checkKL(t *testing.T, scores, reference []float32, most float64) {
	t.Helper()
	var sum float64
	for at := 0; at < len(reference); at += c.Vocab {
		sum += divergence(reference[at:at+c.Vocab], scores[at:at+c.Vocab])
	}
	mean := sum / float64(len(reference)/c.Vocab)
	t.Logf("mean divergence %.2g nats", mean)
	if !(mean < most) {
		t.Errorf("mean divergence %.3g nats, want less than %.3g", mean, most)
	}
}

// divergence is the Kullback-Leibler divergence of softmax(scores) from softmax(reference), in nats.
func divergence(reference, scores []float32) float64 {
	p, q := logSoftmax(reference), logSoftmax(scores)
	var sum float64
	for i := range p {
		sum += math.Exp(p[i]) * (p[i] - q[i])
	}
	return sum
}

func logSoftmax(scores []float32) []float64 {
	top := math.Inf(-1)
	for _, s := range scores {
		top = math.Max(top, float64(s)) // NaN stays
	}
	var sum float64
	for _, s := range scores {
		sum += math.Exp(float64(s) - top)
	}
	out := make([]float64, len(scores))
	for i, s := range scores {
		out[i] = float64(s) - top - math.Log(sum)
	}
	return out
}
