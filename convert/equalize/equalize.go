// Package equalize scales the channels between a norm and the linear layers behind it, and between the up and the down
// projection, so that channels with large inputs get more of the precision of a quantized weight (Lin et al., AWQ,
// arXiv 2306.00978). What one side is divided by, the other is multiplied by: the model computes the same.
//
// A channel's factor is a power of the mean square of its input, relative to the median channel. The exponent is the
// one, of a few, with which the layer's sampled rows lose least in int4.
//
// Contract:
//   - A [Result] is a function of the weights and the statistics alone. It is computed with additions, products and
//     square roots in a fixed order, which are the same on every processor.
//   - The norm is rounded to its own type first. Factors are those that the rounded norm has, so that rounding it costs
//     nothing.
//   - Only models are scaled in which the places of norms are known: norms that multiply by their weight, and feed
//     nothing but the layers named here. Norms of queries and keys come after these layers, so that no factor passes
//     them. A layer whose input other tensors share is left alone.
package equalize

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
	"golang.org/x/sync/errgroup"
)

// Rule is the version of the arithmetic. Results of a rule never change.
const Rule = "equalize-1"

// Result says how the channels of a model are scaled.
type Result struct {
	Scalings map[string]source.Scaling
	Set      *statistics.Set // of the scaled model
	Layers   int             // inputs that were scaled
}

// layout names the tensors of a layer that read one input, and the one that makes it: a norm, or a matrix whose rows
// are the channels.
type layout struct {
	readers []string // sorted
	maker   string
	norm    bool
}

var layouts = []layout{
	{
		[]string{"self_attn.k_proj.weight", "self_attn.q_proj.weight", "self_attn.v_proj.weight"},
		"input_layernorm.weight", true,
	},
	{[]string{"mlp.gate_proj.weight", "mlp.up_proj.weight"}, "post_attention_layernorm.weight", true},
	{[]string{"mlp.down_proj.weight"}, "mlp.up_proj.weight", false},
}

// job is an input whose channels are scaled.
type job struct {
	layer   *statistics.Layer
	names   []string
	readers []source.Tensor
	maker   source.Tensor
	norm    bool
	factors []float32 // nil = left alone
}

// Find computes the factors of a model's channels.
func Find(ctx context.Context, src *source.Source, set *statistics.Set, parallel int) (*Result, error) {
	r := &Result{Scalings: map[string]source.Scaling{}, Set: statistics.New(set.About)}
	jobs := r.jobs(src, set)
	g, ctx := errgroup.WithContext(ctx)
	if g.SetLimit(parallel); parallel <= 0 {
		g.SetLimit(runtime.GOMAXPROCS(0))
	}
	for _, j := range jobs {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return j.find()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	changed := map[*statistics.Layer]*statistics.Layer{}
	for _, j := range jobs {
		if j.factors != nil {
			r.Layers++
			r.scale(j)
			changed[j.layer] = divided(j.layer, j.factors, set.Block)
		}
	}
	for _, name := range set.Tensors() {
		l := set.Layer(name)
		if other := changed[l]; other != nil {
			l = other
		}
		r.Set.Add(l, name)
	}
	return r, nil
}

// jobs lists the inputs that can be scaled.
func (r *Result) jobs(src *source.Source, set *statistics.Set) (jobs []*job) {
	if !arch.Equalizable(src.Model) {
		return nil
	}
	readers, names := map[*statistics.Layer][]string{}, set.Tensors()
	for _, n := range names {
		readers[set.Layer(n)] = append(readers[set.Layer(n)], n)
	}
	for _, first := range names {
		l := set.Layer(first)
		list := readers[l]
		if list[0] != first || len(l.Rows) != 1 {
			continue
		}
		for _, form := range layouts {
			prefix, ok := strings.CutSuffix(first, form.readers[0])
			if !ok || !strings.HasPrefix(prefix, "model.layers.") || !form.fits(prefix, list) {
				continue
			}
			j := &job{layer: l, names: list, norm: form.norm}
			if j.open(src, prefix+form.maker) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// fits reports whether tensors are exactly those of the layout, in a layer with this prefix.
func (f layout) fits(prefix string, names []string) bool {
	return slices.EqualFunc(names, f.readers, func(name, suffix string) bool { return name == prefix+suffix })
}

// open finds a job's tensors. It reports whether all are plain ones of the right shape.
func (j *job) open(src *source.Source, maker string) bool {
	plain := func(name string, dims int) (source.Tensor, bool) {
		t, err := src.Lookup(name)
		if err != nil {
			return source.Tensor{}, false
		}
		float := t.DType == safetensors.F32 || t.DType == safetensors.F16 || t.DType == safetensors.BF16
		return *t, t.Coded == nil && t.Quant == 0 && float && len(t.Shape) == dims
	}
	for _, name := range j.names {
		t, ok := plain(name, 2)
		if !ok || t.Shape[1] != int64(j.layer.Width) || t.Shape[1]%group != 0 {
			return false
		}
		j.readers = append(j.readers, t)
	}
	dims := 2
	if j.norm {
		dims = 1
	}
	if _, err := src.Lookup(strings.TrimSuffix(maker, "weight") + "bias"); err == nil {
		return false // it would have to be scaled too
	}
	var ok bool
	j.maker, ok = plain(maker, dims)
	return ok && j.maker.Shape[0] == int64(j.layer.Width)
}

// The exponents of the roots of mean squares that are tried: 0, 1/steps, and so on.
const (
	steps       = 8
	mostSteps   = 6
	largest     = 16.0  // factor, and its inverse
	worth       = 0.98  // of the error; more is not worth the change
	rowsOf      = 128   // of each reader that are sampled
	group, bits = 32, 4 // of the codes that are tried
)

// find chooses the factors.
func (j *job) find() error {
	norm, err := j.normWeights()
	if err != nil {
		return err
	}
	samples, err := j.sample()
	if err != nil {
		return err
	}
	squares := make([]float64, j.layer.Width)
	for i, v := range j.layer.Squares {
		squares[i] = float64(v)
	}
	roots := relative(squares)
	least := math.Inf(1)
	var first float64
	for k := range mostSteps + 1 {
		factors := j.rounded(power(roots, k), norm)
		var sum float64
		for at := 0; at < len(samples); at += len(squares) {
			sum += loss(samples[at:][:len(squares)], squares, factors)
		}
		if k == 0 {
			first = sum
		}
		if sum < least {
			least = sum
			if j.factors = factors; k == 0 {
				j.factors = nil
			}
		}
	}
	if least > worth*first {
		j.factors = nil
	}
	return nil
}

// relative returns the sixteenth roots of mean squares over their median: the roots of their eighth powers.
func relative(squares []float64) []float64 {
	sorted := slices.Clone(squares)
	sort.Float64s(sorted)
	median := sorted[len(sorted)/2]
	out := make([]float64, len(squares))
	for i, v := range squares {
		out[i] = 1
		if median > 0 && v > 0 {
			out[i] = math.Sqrt(math.Sqrt(math.Sqrt(math.Sqrt(v / median))))
		}
	}
	return out
}

// power returns the k-th powers of numbers, within the largest factor.
func power(roots []float64, k int) []float64 {
	out := make([]float64, len(roots))
	for i, r := range roots {
		v := 1.0
		for range k {
			v *= r
		}
		out[i] = min(max(v, 1/largest), largest)
	}
	return out
}

// rounded returns factors that a norm's weights can be divided by without a rounding error.
func (j *job) rounded(factors []float64, norm []float32) []float32 {
	out := make([]float32, len(factors))
	for i, f := range factors {
		out[i] = float32(f)
		if norm == nil {
			continue
		}
		divided := float64(quantize.DType(j.maker.DType).Round(float32(float64(norm[i]) / f)))
		out[i] = 1
		if size := math.Abs(divided); size > subnormal && !math.IsInf(size, 1) {
			out[i] = float32(float64(norm[i]) / divided)
		}
	}
	return out
}

// subnormal is more than the numbers of float16 with fewer significant bits.
const subnormal = 0x1p-14

// loss returns the weighted squared error of a row whose columns are scaled while it is quantized.
func loss(row []float32, squares []float64, factors []float32) (sum float64) {
	const limit = 1<<bits - 1
	var x [group]float64
	for at := 0; at < len(row); at += group {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range x {
			x[i] = float64(float64(row[at+i]) * float64(factors[at+i]))
			low, high = min(low, x[i]), max(high, x[i])
		}
		scale := (high - low) / limit
		if scale == 0 {
			continue
		}
		by := 1 / scale
		for i, v := range x {
			n := float64((v-low)*by) + 0x1.8p52 - 0x1.8p52
			e := (v - low - float64(scale*n)) / float64(factors[at+i])
			sum += float64(float64(squares[at+i]*e) * e)
		}
	}
	return sum
}

// normWeights reads the weights of the norm; nil if a matrix makes the channels.
func (j *job) normWeights() ([]float32, error) {
	if !j.norm {
		return nil, nil
	}
	return read(j.maker, 0, int64(j.layer.Width))
}

// sample reads rows that are spread over all readers.
func (j *job) sample() (out []float32, err error) {
	for _, t := range j.readers {
		n := min(t.Shape[0], rowsOf)
		for i := range n {
			row, err := read(t, i*t.Shape[0]/n*t.Shape[1], t.Shape[1])
			if err != nil {
				return nil, source.InTensor(t.Name, err)
			}
			out = append(out, row...)
		}
	}
	return out, nil
}

func read(t source.Tensor, begin, count int64) ([]float32, error) {
	data := make([]byte, 4*count)
	if err := t.Elements().Floats(data, begin, count); err != nil {
		return nil, err
	}
	return quantize.Float32s(data, quantize.F32)
}

// scale adds a job's factors.
func (r *Result) scale(j *job) {
	inverse := make([]float32, len(j.factors))
	for i, f := range j.factors {
		inverse[i] = 1 / f
	}
	change := func(name string, f func(*source.Scaling)) {
		s := r.Scalings[name]
		f(&s)
		r.Scalings[name] = s
	}
	change(j.maker.Name, func(s *source.Scaling) {
		if j.norm {
			s.Columns = inverse
		} else {
			s.Rows = inverse
		}
	})
	for _, name := range j.names {
		change(name, func(s *source.Scaling) { s.Columns = j.factors })
	}
}

// divided returns the statistics of an input that is divided by factors.
func divided(l *statistics.Layer, factors []float32, block int) *statistics.Layer {
	out := &statistics.Layer{Width: l.Width, Rows: l.Rows, Squares: make([]float32, len(l.Squares))}
	for i, v := range l.Squares {
		f := float64(factors[i])
		out.Squares[i] = float32(float64(v) / (f * f))
	}
	if l.Moments == nil {
		return out
	}
	out.Moments = func(k int) ([]float32, error) {
		m, err := l.Moments(k)
		if err != nil {
			return nil, err
		}
		m = slices.Clone(m)
		n := statistics.Blocks(l.Width, block)[k]
		part := factors[k*block:][:n]
		for i := range n {
			for c := range n {
				m[i*n+c] = float32(float64(m[i*n+c]) / (float64(part[i]) * float64(part[c])))
			}
		}
		return m, nil
	}
	return out
}
