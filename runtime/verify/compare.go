package verify

import (
	"math"

	"github.com/ingotml/ingot/runtime/quality"
)

// Comparison measures how much logits differ from a reference.
type Comparison struct {
	Tokens  int     // positions compared
	MaxAbs  float64 // largest absolute difference of a logit
	MeanAbs float64
	MeanKL  float64 // KL(reference || model) in nats, mean over positions
	Top1    float64 // share of positions with the same most likely token, see decidedMargin
	Scale   float64 // standard deviation of the reference's logits
}

// decidedMargin is the least margin between the reference's two largest logits, in standard deviations of all its
// logits, at which a position counts for Top1. With less, the order of the two is accidental.
const decidedMargin = 0.005

// comparer computes a Comparison row by row.
type comparer struct {
	ref               *quality.Reference
	scale             float64
	skip              int // leading tokens without logits in the reference
	rows              int
	maxAbs, sumAbs    float64
	sumKL             float64
	counted, agreeing int
}

func newComparer(ref *quality.Reference) *comparer {
	var sum, squares float64
	for _, v := range ref.Logits {
		sum += float64(v)
	}
	mean := sum / float64(len(ref.Logits))
	for _, v := range ref.Logits {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	skip := len(ref.Tokens) - len(ref.Logits)/ref.Vocab
	return &comparer{ref: ref, skip: skip, scale: math.Sqrt(squares / float64(len(ref.Logits)))}
}

// add compares the next row.
func (c *comparer) add(ours []float32) {
	if c.skip > 0 {
		c.skip--
		return
	}
	want := c.ref.Logits[c.rows*c.ref.Vocab:][:c.ref.Vocab]
	c.rows++
	for i, w := range want {
		d := math.Abs(float64(ours[i]) - float64(w))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		c.maxAbs = max(c.maxAbs, d)
		c.sumAbs += d
	}
	c.sumKL += quality.KL(want, ours)
	first, second := topTwo(want)
	if float64(want[first])-float64(want[second]) > decidedMargin*c.scale {
		c.counted++
		if best, _ := topTwo(ours); best == first {
			c.agreeing++
		}
	}
}

func (c *comparer) result() Comparison {
	r := Comparison{
		Tokens: c.rows, MaxAbs: c.maxAbs, MeanAbs: c.sumAbs / float64(c.rows*c.ref.Vocab),
		MeanKL: c.sumKL / float64(c.rows), Top1: 1, Scale: c.scale,
	}
	if c.counted > 0 {
		r.Top1 = float64(c.agreeing) / float64(c.counted)
	}
	return r
}

// topTwo returns the indices of the two largest values; of equal ones, the first. For a single element, both are its
// index.
func topTwo(x []float32) (first, second int) {
	second = -1
	for i, v := range x[1:] {
		switch i++; {
		case v > x[first]:
			first, second = i, first
		case second < 0 || v > x[second]:
			second = i
		}
	}
	return first, max(second, 0)
}
