// Package quality says how far the scores of a model are from those of another one, over the same tokens.
//
// Contract: scores are float32 before softmax, a row for each position; everything after that is computed in float64, so that results agree with
// a computation in float64 from the same scores to better than one in a million. The figures are those that are published for quantized
// models: perplexity of both with its standard error, Kullback-Leibler divergence of the base's distribution against the other's in nats, and
// how often the likeliest token is the same.
package quality

import (
	_ "embed"
	"math"
	"slices"
)

// Row is what one position tells.
type Row struct {
	Base, Other float64 // negative log-likelihood of the token that follows, in nats
	KL          float64 // of the base's distribution against the other's, in nats; infinite where the other's scores are not finite
	Top         bool    // whether the same token is the likeliest; of equal ones the first counts
}

// Judge compares the scores of one position; next is the token that follows. Both slices have the same length.
// Rows that are not [Row.Finite] have no place in a report.
func Judge(base, other []float32, next int32) Row {
	lb, lo := logSumExp(base), logSumExp(other)
	r := Row{Base: lb - float64(base[next]), Other: lo - float64(other[next]), KL: divergence(base, other, lb, lo), Top: top(base) == top(other)}
	if math.IsNaN(r.Other) {
		r.Other = math.Inf(1)
	}
	return r
}

// Finite reports whether all of a row's figures are.
func (r Row) Finite() bool {
	sum := r.Base + r.Other + r.KL
	return !math.IsInf(sum, 0) && !math.IsNaN(sum)
}

// KL is the divergence of softmax(p) against softmax(q), in nats; never negative, and infinite where q is not finite.
func KL(p, q []float32) float64 { return divergence(p, q, logSumExp(p), logSumExp(q)) }

func divergence(p, q []float32, lp, lq float64) float64 {
	var sum float64
	for i := range p {
		a := float64(p[i]) - lp
		if e := math.Exp(a); e != 0 { // of what cannot come, what q thinks does not matter
			sum += e * (a - (float64(q[i]) - lq))
		}
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return max(sum, 0)
}

func logSumExp(x []float32) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		most = max(most, float64(v))
	}
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum)
}

func top(x []float32) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

// Estimate is a mean and its standard error: the deviation of its values over the root of their number.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"standard_error"`
}

// Report is what all positions tell together.
type Report struct {
	Tokens int `json:"tokens"` // positions that were judged

	BasePerplexity  Estimate `json:"base_perplexity"`
	Perplexity      Estimate `json:"perplexity"`
	PerplexityRatio Estimate `json:"perplexity_ratio"` // over the base's; its error knows that both saw the same tokens

	MeanKL   Estimate `json:"mean_kl"` // nats
	MedianKL float64  `json:"median_kl"`
	KL99     float64  `json:"kl_99"` // 99 of 100 positions have at most this
	MaxKL    float64  `json:"max_kl"`

	Top1 Estimate `json:"top1"` // share of positions with the same likeliest token
}

// Summarize makes a report of at least one row.
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
		Top1: mean(list(func(r Row) float64 {
			if r.Top {
				return 1
			}
			return 0
		})),
	}
	slices.Sort(kl)
	r.MedianKL, r.KL99, r.MaxKL = Quantile(kl, 0.5), Quantile(kl, 0.99), kl[len(kl)-1]
	return r
}

// mean is the mean of values, whose deviation is that of a sample.
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

// exponent is the estimate of exp(e): its error is that of e times the slope there.
func exponent(e Estimate) Estimate {
	v := math.Exp(e.Value)
	return Estimate{v, v * e.Error}
}

// Quantile is the value below which a share q of sorted values lies, between two values by a straight line.
func Quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// Text is what models are compared over when nobody brings a text: some pages of prose, instructions, code and tables. It stays as it is, so that figures
// of today can be compared with those of tomorrow.
//
//go:embed text.txt
var Text string
