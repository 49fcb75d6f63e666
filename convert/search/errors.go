package search

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/weighted"
	"golang.org/x/sync/errgroup"
)

// How many elements of a tensor are sampled: its share of rows, within these bounds.
const (
	leastSample = 32 << 10
	mostSample  = 128 << 10
	sampleShare = 64
)

// errors computes the errors of all options. Tensors with the same input are visited together, since they share the
// factors of its second moments.
func (s *searcher) errors(ctx context.Context) error {
	var jobs [][]*tensor
	byLayer := map[*statistics.Layer]int{}
	for _, t := range s.tensors {
		how := t.calibrated()
		if how == nil {
			jobs = append(jobs, []*tensor{t})
			continue
		}
		at, ok := byLayer[how.Layer]
		if !ok {
			at = len(jobs)
			byLayer[how.Layer] = at
			jobs = append(jobs, nil)
		}
		jobs[at] = append(jobs[at], t)
	}
	g, ctx := errgroup.WithContext(ctx)
	if g.SetLimit(s.Parallel); s.Parallel <= 0 {
		g.SetLimit(runtime.GOMAXPROCS(0))
	}
	var done atomic.Int64
	s.report("errors of types", 0, len(s.tensors))
	for _, job := range jobs {
		g.Go(func() error {
			in, err := newInput(job)
			for _, t := range job {
				if err == nil {
					err = ctx.Err()
				}
				if err == nil {
					err = t.sample(in)
				}
				if err != nil {
					return source.InTensor(t.plain.Name, err)
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	s.report("errors of types", int(done.Load()), len(s.tensors))
	return err
}

// calibrated returns how statistics choose a tensor's codes, of any option that they choose; nil if there is none. It
// prefers options whose errors are compensated.
func (t *tensor) calibrated() (how *plan.Calibrated) {
	for _, o := range t.options {
		if c := o.planned.Coding.Calibrated; c != nil && (how == nil || c.Method == weighted.Compensate) {
			how = c
		}
	}
	return how
}

// input has the statistics of an input that several tensors may share. A nil input means that all columns count the
// same.
type input struct {
	how     *plan.Calibrated
	squares [][]float32 // of the matrices
	factors []*weighted.Factor
	moments [][]float64 // of the blocks; nil if only the diagonal is known
}

func newInput(job []*tensor) (*input, error) {
	how := job[0].calibrated()
	if how == nil {
		return nil, nil
	}
	in := &input{how: how}
	for i := range how.Layer.Rows {
		in.squares = append(in.squares, how.Squares(i))
	}
	var err error
	if in.factors, err = how.Factors(); err != nil || in.factors == nil {
		return in, err
	}
	for i := range in.factors {
		m, err := how.Layer.Moments(i)
		if err != nil {
			return nil, err
		}
		wide := make([]float64, len(m))
		for k, v := range m {
			wide[k] = float64(v)
		}
		in.moments = append(in.moments, wide)
	}
	return in, nil
}

// energy returns the mean square that errors of rows, which are of the given matrices of the stack, add to the outputs.
func (in *input) energy(e []float64, matrices []int) (sum float64) {
	width := len(e) / len(matrices)
	if in == nil {
		for _, v := range e {
			sum += v * v
		}
		return sum
	}
	if in.moments == nil {
		for i, v := range e {
			sum += float64(in.squares[matrices[i/width]][i%width]) * v * v
		}
		return sum
	}
	at := 0
	for _, m := range in.moments {
		n := int(math.Sqrt(float64(len(m))))
		part := make([]float64, 0, n*len(matrices))
		for r := range matrices {
			part = append(part, e[r*width+at:][:n]...)
		}
		sum += weighted.Energy(m, n, part)
		at += n
	}
	return sum
}

// rows are sampled rows of a tensor.
type rows struct {
	width    int
	from     quantize.DType
	raw      []byte
	values   []float32
	matrices []int // of each row: its matrix in the stack
}

// sample computes the errors of a tensor's options from some of its rows.
func (t *tensor) sample(in *input) error {
	r, total, err := t.read()
	if err != nil {
		return err
	}
	for i := range t.options {
		o := &t.options[i]
		if o.of == 0 {
			continue
		}
		decoded, err := r.code(o, in)
		if err != nil {
			return err
		}
		e := make([]float64, len(r.values))
		for k, v := range r.values {
			e[k] = float64(v) - float64(decoded[k])
		}
		o.err = in.energy(e, r.matrices) * float64(total) / float64(len(r.matrices))
	}
	return nil
}

// read reads rows that are spread over the tensor. total is how many it has.
func (t *tensor) read() (r *rows, total int64, err error) {
	shape := t.plain.Shape
	width := shape[len(shape)-1]
	total = t.plain.Params() / width
	n := min(max(total/sampleShare, (leastSample+width-1)/width), max(mostSample/width, 1), total)
	r = &rows{width: int(width), from: quantize.DType(t.plain.Source)}
	file, closeFile, err := t.plain.Sources[0].Tensor.Open()
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	size := width * int64(r.from.Size())
	r.raw = make([]byte, n*size)
	matrix := total
	if len(shape) == 3 {
		matrix = shape[1]
	}
	for i := range n {
		at := i * total / n
		if _, err := file.ReadAt(r.raw[i*size:][:size], at*size); err != nil {
			return nil, 0, err
		}
		r.matrices = append(r.matrices, int(at/matrix))
	}
	r.values, err = quantize.Float32s(r.raw, r.from)
	return r, total, err
}

// code returns the values of rows after they were quantized.
func (r *rows) code(o *option, in *input) ([]float32, error) {
	coding, groups := o.planned.Coding, len(r.values)/o.of.Group()
	scales := r.from
	if coding.Calibrated != nil {
		scales = quantize.F32
	}
	b := o.of.NewBlocks(scales, groups)
	var err error
	if coding.Calibrated == nil {
		err = o.of.Encode(b, r.raw, r.from)
	} else {
		err = r.calibrate(b, o, in)
	}
	if err != nil {
		return nil, err
	}
	decoded := make([]byte, 4*len(r.values))
	if err := o.of.Decode(decoded, quantize.F32, b, scales); err != nil {
		return nil, err
	}
	return quantize.Float32s(decoded, quantize.F32)
}

// calibrate quantizes rows as the image will have them.
func (r *rows) calibrate(b quantize.Blocks, o *option, in *input) error {
	var factors []*weighted.Factor
	if o.planned.Coding.Calibrated.Method == weighted.Compensate {
		factors = in.factors
	}
	coders, err := o.planned.Coders(factors)
	if err != nil {
		return err
	}
	size, each := o.of.GroupSizes(quantize.F32), r.width/o.of.Group()
	for i, matrix := range r.matrices {
		at := i * each
		part := func(all []byte, one int) []byte { return all[at*one:][:each*one] }
		row := quantize.Blocks{
			Packed: part(b.Packed, size.Packed), Scales: part(b.Scales, size.Scales), Biases: part(b.Biases, size.Biases),
		}
		if err := coders[matrix].Encode(row, r.values[i*r.width:][:r.width]); err != nil {
			return err
		}
	}
	return nil
}
