// Package quality measures how far the logits of a model are from those of a base model, over the same tokens.
//
// Contract: logits are float32, with one row for each position. All further computation is in float64, so results agree
// with a computation in float64 from the same logits to better than one in a million. The statistics are those commonly
// published for quantized models: the perplexity of both with its standard error, the Kullback-Leibler divergence
// KL(base || model) in nats, and how often the most likely token is the same.
package quality

import (
	_ "embed"
	"math"
	"slices"
)

// Row holds the statistics of one position.
type Row struct {
	Base, Other float64 // negative log-likelihood of the next token, in nats
	KL          float64 // KL(base || other) in nats; +Inf if a logit of the other is not finite
	Top         bool    // the most likely token is the same; the first one of equals counts
	Flip        bool    // the most likely token is the next one for exactly one of both
}

// Judge compares the logits of one position, which have the same length; next is the next token. Rows that are not
// [Row.Finite] must not be passed to Summarize.
func Judge(base, other []float32, next int32) Row {
	p, n := compare(base, other), int(next)
	r := Row{
		Base: p.baseLog - float64(base[next]), Other: p.otherLog - float64(other[next]),
		KL: p.kl, Top: p.baseTop == p.otherTop, Flip: (p.baseTop == n) != (p.otherTop == n),
	}
	if math.IsNaN(r.Other) {
		r.Other = math.Inf(1)
	}
	return r
}

// Finite reports whether all values of a row are finite.
func (r Row) Finite() bool {
	sum := r.Base + r.Other + r.KL
	return !math.IsInf(sum, 0) && !math.IsNaN(sum)
}

// KL returns the divergence KL(softmax(p) || softmax(q)) in nats. It is never negative; +Inf if q is not finite.
func KL(p, q []float32) float64 { return compare(p, q).kl }

// compared is what two rows of logits have in common.
type compared struct {
	baseLog, otherLog float64 // logarithms of the sums of exponentials
	baseTop, otherTop int     // indices of the largest; the first of equals
	kl                float64
}

// compare compares two rows of logits in one pass over their exponentials.
func compare(base, other []float32) compared {
	c := compared{baseTop: top(base), otherTop: top(other)}
	b, o := float64(base[c.baseTop]), float64(other[c.otherTop])
	var sumBase, sumOther, cross float64
	for i, v := range other[:len(base)] {
		x, y := float64(base[i])-b, float64(v)-o
		p := exp(x)
		sumBase += p
		sumOther += exp(y)
		if p != 0 { // where p is 0, the term is 0
			cross += p * (x - y)
		}
	}
	logBase, logOther := math.Log(sumBase), math.Log(sumOther)
	c.baseLog, c.otherLog = b+logBase, o+logOther
	if c.kl = max(cross/sumBase-logBase+logOther, 0); math.IsNaN(c.kl) {
		c.kl = math.Inf(1)
	}
	return c
}

func top(x []float32) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

// Estimate is a mean and its standard error: the sample's standard deviation over the square root of its size.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"standard_error"`
}

// Report summarizes all positions.
type Report struct {
	Tokens int `json:"tokens"` // number of positions

	BasePerplexity Estimate `json:"base_perplexity"`
	Perplexity     Estimate `json:"perplexity"`
	// over the base's; the error takes into account that both saw the same tokens
	PerplexityRatio Estimate `json:"perplexity_ratio"`

	MeanKL   Estimate `json:"mean_kl"` // nats
	MedianKL float64  `json:"median_kl"`
	KL99     float64  `json:"kl_99"` // 99th percentile
	MaxKL    float64  `json:"max_kl"`

	MedianKLError float64 `json:"median_kl_standard_error"`
	KL99Error     float64 `json:"kl_99_standard_error"`

	Top1 Estimate `json:"top1"` // share of positions with the same most likely token
	// share of positions where the text's token is the most likely one for exactly one of both
	Flips Estimate `json:"flips"`
}

// Summarize returns a report on rows, of which there must be at least one.
func Summarize(rows []Row) Report {
	list := func(f func(Row) float64) []float64 {
		values := make([]float64, len(rows))
		for i, r := range rows {
			values[i] = f(r)
		}
		return values
	}
	kl := list(func(r Row) float64 { return r.KL })
	r := Report{
		Tokens:          len(rows),
		BasePerplexity:  exponent(mean(list(func(r Row) float64 { return r.Base }))),
		Perplexity:      exponent(mean(list(func(r Row) float64 { return r.Other }))),
		PerplexityRatio: exponent(mean(list(func(r Row) float64 { return r.Other - r.Base }))),
		MeanKL:          mean(kl),
		Top1:            mean(list(func(r Row) float64 { return share(r.Top) })),
		Flips:           mean(list(func(r Row) float64 { return share(r.Flip) })),
	}
	slices.Sort(kl)
	r.MedianKLError, r.KL99Error = quantileError(kl, 0.5), quantileError(kl, 0.99)
	r.MedianKL, r.KL99, r.MaxKL = Quantile(kl, 0.5), Quantile(kl, 0.99), kl[len(kl)-1]
	return r
}

// mean returns the mean of values and its standard error, from the sample's standard deviation.
func mean(values []float64) Estimate {
	n := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	m := sum / n
	for _, v := range values {
		squares += (v - m) * (v - m)
	}
	return Estimate{m, math.Sqrt(squares / max(n-1, 1) / n)}
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// quantileError returns the standard error of a quantile of sorted values: the number of values below the true quantile
// is binomial, so half the distance of the quantiles one standard deviation of it away.
func quantileError(sorted []float64, q float64) float64 {
	away := math.Sqrt(q * (1 - q) / float64(len(sorted)))
	return (Quantile(sorted, min(q+away, 1)) - Quantile(sorted, max(q-away, 0))) / 2
}

// exponent returns the estimate of exp(e). It propagates the error to first order.
func exponent(e Estimate) Estimate {
	v := math.Exp(e.Value)
	return Estimate{v, v * e.Error}
}

// Quantile returns the quantile q of sorted values, interpolated linearly.
func Quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// Text is the default text for comparisons: some pages of prose, instructions, code and tables. It must not change, so
// that results remain comparable.
//
//go:embed text.txt
var Text string
