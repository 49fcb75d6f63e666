package plan

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize/weighted"
	"golang.org/x/sync/errgroup"
)

// Calibrated says how statistics choose a tensor's codes.
type Calibrated struct {
	Layer  *statistics.Layer
	Method weighted.Method
	Block  int  // columns of a block of second moments
	Lookup bool // rows are looked up as well, where all columns count the same
}

// maxColumns bounds the length of a row that is quantized as a whole: several must fit a slab of the writer.
const maxColumns = 1 << 16

// otherRows reports whether the rows of a source are not those of the tensor.
func (t Tensor) otherRows(width int64) bool {
	return slices.ContainsFunc(t.Sources, func(s Source) bool { return s.Shape[len(s.Shape)-1] != width })
}

// calibrate makes a tensor's codes depend on the statistics, if it has some and its type has a choice.
func (p *planner) calibrate(t *Tensor, tied bool) error {
	set, c := p.opts.Calibration, t.Coding
	if set == nil || t.Digest != "" || c.Keep || c.Global != 0 || c.Target == 0 || !weighted.Supports(c.Target) {
		return nil
	}
	layer := set.Layer(t.Match.Spec.Name)
	if layer == nil {
		return nil
	}
	width, experts := t.Shape[len(t.Shape)-1], int64(1)
	if width > maxColumns || c.Floats && t.otherRows(width) {
		return nil
	}
	if len(t.Shape) == 3 {
		experts = t.Shape[0]
	}
	if err := set.Fit(t.Match.Spec.Name, width, experts); err != nil {
		return err
	}
	how := &Calibrated{Layer: layer, Method: weighted.Search, Block: set.Block}
	how.Lookup = tied && t.Match.Spec.IsEmbedding()
	// The codes of an embedding are not compensated: that moves errors onto columns that count less as inputs of the head,
	// but not for lookups.
	if layer.Moments != nil && !how.Lookup && set.Block%c.Target.Group() == 0 {
		how.Method = weighted.Compensate
	}
	from := c.Coded()
	if c.Stored != "" {
		from = c.Stored
	}
	parts, err := c.Target.Parts(from, t.Shape)
	if err != nil {
		return source.InTensor(t.Name, err)
	}
	q := blob.Quantized{Type: c.Target, Parts: parts, Rule: weighted.Rule(c.Target, how.Method)}
	if err := c.place(q.Layout(t.Name)); err != nil {
		return source.InTensor(t.Name, err)
	}
	c.Calibrated = how
	t.Coding = c
	t.Arrays, t.Metadata, t.Bytes, t.Size = c.Layout.Arrays, c.Layout.Metadata, c.Layout.Bytes(), c.Layout.Size()
	last := len(t.Transform) - 1
	t.Transform = slices.Clone(t.Transform)
	t.Transform[last] = fmt.Sprintf("%s (%s)", t.Transform[last], how.Method)
	return nil
}

// Factors computes what the compensation of errors needs of the second moments. It is nil unless errors are
// compensated. Tensors with the same Layer and Block have the same factors.
func (how *Calibrated) Factors() ([]*weighted.Factor, error) {
	if how.Method != weighted.Compensate {
		return nil, nil
	}
	return factorsOf(how.Layer, how.Block)
}

// Coders returns the coders of a tensor's matrices: one for each expert, or one. factors is the result of
// [Calibrated.Factors] of the tensor.
func (t Tensor) Coders(factors []*weighted.Factor) ([]*weighted.Coder, error) {
	how, c := t.Coding.Calibrated, t.Coding
	scales := c.Coded()
	if c.Stored != "" {
		scales = c.Stored
	}
	var coders []*weighted.Coder
	for i := range how.Layer.Rows {
		coder, err := weighted.New(c.Target, scales, how.Squares(i), factors, how.Block)
		if err != nil {
			return nil, err
		}
		coders = append(coders, coder)
	}
	return coders, nil
}

// Squares returns how much the errors of the columns of a matrix count: an expert's, or those of the only one, 0.
func (how *Calibrated) Squares(expert int) []float32 {
	squares, _ := how.Layer.Expert(expert)
	if how.Lookup {
		return forLookup(squares)
	}
	return squares
}

// forLookup returns the importance of the columns of an embedding that is also the head: half for each use.
func forLookup(squares []float32) []float32 {
	var sum float64
	for _, v := range squares {
		sum += float64(v)
	}
	mean := float32(sum / float64(len(squares)))
	out := make([]float32, len(squares))
	for i, v := range squares {
		out[i] = v + mean
	}
	return out
}

func factorsOf(l *statistics.Layer, block int) ([]*weighted.Factor, error) {
	sizes := statistics.Blocks(l.Width, block)
	factors := make([]*weighted.Factor, len(sizes))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, n := range sizes {
		g.Go(func() error {
			moments, err := l.Moments(i)
			if err == nil {
				factors[i], err = weighted.NewFactor(moments, n)
			}
			return err
		})
	}
	return factors, g.Wait()
}
