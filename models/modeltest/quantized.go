package modeltest

import (
	"cmp"
	"math"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
)

// Limits are the largest allowed mean divergences from the reference, in nats per position. 0 means the default. A
// small random checkpoint may need more than others of its architecture, for example if its router is nearly undecided.
// Further fields say what is checked.
type Limits struct {
	Logits float64 // of a logit in float32 on a CPU, in standard deviations; default 1e-4
	Int8   float64 // int8 weights; default 0.01
	Stored float64 // computing in the type of the stored weights; default 0.01
	KV8    float64 // 8-bit keys and values; default 0.005
	KV4    float64 // 4-bit keys and values; default 0.3
	// Ranks is of a logit of several ranks, in standard deviations of the logits of one; default 1e-5. Models that amplify
	// float32 rounding need more: even on one rank, their logits differ from the reference's by about as much.
	Ranks float64

	// Full are the variants that take all paths in the short form, the names of their checkpoints after the prefix; see
	// [Every]. Ranks divide them, too; by default only the first variant.
	Full []string
	// Unrepeated models have graphs that depend on positions, so that forward passes are not replayed from a tape.
	Unrepeated bool
}

// maxNarrowKL is the loose limit for weights in other formats that are computed in the stored type.
const maxNarrowKL = 0.1

func (l Limits) int8() float64   { return cmp.Or(l.Int8, 0.01) }
func (l Limits) stored() float64 { return cmp.Or(l.Stored, 0.01) }

// checkStored compares the distributions of the model in the type of the stored weights with the reference's.
func (c *Checkpoint) checkStored(t *testing.T) {
	t.Helper()
	m, _ := c.load(t, prec{})
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
// values. [Checkpoint.Formats] includes it.
func (c *Checkpoint) checkModes(t *testing.T) {
	t.Helper()
	for _, format := range []quantize.Type{quantize.Int4, quantize.MXFP4, quantize.MXFP8, quantize.NVFP4} {
		c.asUnpacked(t, format)
	}
}

// checkPacked checks that a model with packed weights computes the same as with the unpacked values, with prefill at
// once and in steps of one token. It returns the logits and the model.
func (c *Checkpoint) checkPacked(t *testing.T, format quantize.Type) ([]float32, models.Model) {
	t.Helper()
	whole, m := c.asUnpacked(t, format)
	few := 8
	if c.Limits.Unrepeated {
		few = 2 // such steps take ten times as long
	}
	steps := runtest.Pick(few, len(c.Tokens))
	from := len(c.Tokens) - steps
	c.compare(t, c.decoded(t, m, from), whole[from*c.Vocab:])
	return whole, m
}

// decoded returns the logits of the tokens from one on, in steps of one token that are replayed where they can be. The
// tokens before are one chunk.
func (c *Checkpoint) decoded(t *testing.T, m models.Model, from int) (logits []float32) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(m.Layers())
		defer seq.Free()
		r := models.NewRepeater(e, m)
		defer r.Forget()
		if from > 0 {
			e.Scope(func() { m.Head(r.Forward(nn.Part{Seq: seq, Tokens: c.Tokens[:from]})).Float32s() })
		}
		for i := range c.Tokens[from:] {
			e.Scope(func() {
				part := nn.Part{Seq: seq, Tokens: c.Tokens[from+i:][:1], All: true}
				logits = append(logits, m.Head(r.Forward(part)).Float32s()...)
			})
		}
	})
	return logits
}

// asUnpacked is checkPacked for prefill at once.
func (c *Checkpoint) asUnpacked(t *testing.T, format quantize.Type) ([]float32, models.Model) {
	t.Helper()
	m, packed := c.load(t, prec{format: format, dtype: mlx.Float32})
	if packed == 0 && format.Group() <= 64 {
		t.Errorf("%s: no tensor is quantized", format)
	}
	unpacked, _ := c.load(t, prec{format: format, dtype: mlx.Float32, unpack: true})
	whole := c.chunked(t, m, len(c.Tokens), nil)
	c.compare(t, whole, c.chunked(t, unpacked, len(c.Tokens), nil))
	return whole, m
}

// Formats checks that the model runs with weights in every format, in float32 and in the type of the stored weights.
// In the short form, an integer format has one of its group sizes.
func (c *Checkpoint) Formats(t *testing.T) {
	for _, format := range runtest.Pick(everyFormat(), quantize.Types()) {
		t.Run(format.String(), func(t *testing.T) {
			stored, _ := c.load(t, prec{format: format})
			if format.IsCast() {
				c.checkKL(t, c.chunked(t, stored, 7, nil), c.Logits, c.Limits.stored())
				return
			}
			whole, _ := c.checkPacked(t, format)
			c.checkKL(t, c.chunked(t, stored, 7, nil), whole, maxNarrowKL)
		})
	}
}

// everyFormat returns each format once, with a group size that fits the checkpoints.
func everyFormat() []quantize.Type {
	all := []quantize.Type{
		quantize.Int2, quantize.Int3.WithGroup(32), quantize.Int4, quantize.Int5, quantize.Int6.WithGroup(32), quantize.Int8,
	}
	return append(all, quantize.MXFP4, quantize.MXFP8, quantize.NVFP4, quantize.ToBF16, quantize.ToF16, quantize.ToF32)
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
