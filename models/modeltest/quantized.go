package modeltest

import (
	"cmp"
	"math"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/quantize"
)

// Limits are the largest allowed mean divergences from the reference, in nats per position. 0 means the default. A
// small random checkpoint may need more than others of its architecture, for example if its router is nearly undecided.
type Limits struct {
	Logits float64 // of a logit in float32 on a CPU, in standard deviations; default 1e-4
	Int8   float64 // int8 weights; default 0.01
	Stored float64 // computing in the type of the stored weights; default 0.01
	KV8    float64 // 8-bit keys and values; default 0.005
	KV4    float64 // 4-bit keys and values; default 0.3

	// Unrepeated models have graphs that depend on positions, so that most forward passes are not replayed from a tape.
	Unrepeated bool
}

// maxNarrowKL is the loose limit for weights in other formats that are computed in the stored type.
const maxNarrowKL = 0.1

func (l Limits) int8() float64   { return cmp.Or(l.Int8, 0.01) }
func (l Limits) stored() float64 { return cmp.Or(l.Stored, 0.01) }

// checkStored compares the distributions of the model in the type of the stored weights with the reference's.
func (c *Checkpoint) checkStored(t *testing.T) {
	t.Helper()
	m, _ := c.load(t, precision{})
	c.checkKL(t, c.chunked(t, m, 7, nil), c.Logits, c.Limits.stored())
}

// checkInt8 compares the distributions of the model with int8 weights with the reference's, on all paths.
func (c *Checkpoint) checkInt8(t *testing.T) {
	t.Helper()
	whole, m := c.checkPacked(t, quantize.Int8)
	c.checkKL(t, whole, c.Logits, c.Limits.int8())
	c.compare(t, c.packed(t, m), whole)
	c.compare(t, c.restored(t, m), whole)
}

// checkModes checks that weights in the formats of other families, and in 4 bits, compute the same as their unpacked
// values.
func (c *Checkpoint) checkModes(t *testing.T) {
	t.Helper()
	for _, format := range []quantize.Type{quantize.Int4, quantize.MXFP4, quantize.MXFP8, quantize.NVFP4} {
		c.asUnpacked(t, format)
	}
}

// checkPacked checks that a model with packed weights computes the same as with the unpacked values, with prefill at
// once and token by token. It returns the logits and the model.
func (c *Checkpoint) checkPacked(t *testing.T, format quantize.Type) ([]float32, models.Model) {
	t.Helper()
	whole, m := c.asUnpacked(t, format)
	c.compare(t, c.chunked(t, m, 1, nil), whole)
	return whole, m
}

// asUnpacked is checkPacked for prefill at once.
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

// Formats checks that the model runs with weights in every format, in float32 and in the type of the stored weights.
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

// checkKL checks that the mean divergence of the logits' distributions from the reference is less than limit nats.
func (c *Checkpoint) checkKL(t *testing.T, logits, reference []float32, limit float64) {
	t.Helper()
	var sum float64
	for at := 0; at < len(reference); at += c.Vocab {
		sum += divergence(reference[at:at+c.Vocab], logits[at:at+c.Vocab])
	}
	mean := sum / float64(len(reference)/c.Vocab)
	t.Logf("mean divergence %.2g nats", mean)
	if !(mean < limit) {
		t.Errorf("mean divergence %.3g nats, want less than %.3g", mean, limit)
	}
}

// divergence returns the Kullback-Leibler divergence of softmax(logits) from softmax(reference), in nats.
func divergence(reference, logits []float32) float64 {
	p, q := logSoftmax(reference), logSoftmax(logits)
	var sum float64
	for i := range p {
		sum += math.Exp(p[i]) * (p[i] - q[i])
	}
	return sum
}

func logSoftmax(logits []float32) []float64 {
	top := math.Inf(-1)
	for _, s := range logits {
		top = math.Max(top, float64(s)) // a NaN persists
	}
	var sum float64
	for _, s := range logits {
		sum += math.Exp(float64(s) - top)
	}
	out := make([]float64, len(logits))
	for i, s := range logits {
		out[i] = float64(s) - top - math.Log(sum)
	}
	return out
}
