package nn

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Recurrence is a step of a recurrent layer: each segment continues from the state of its sequence. A step is Convolve,
// then Scan; only Scan for a layer without a convolution; or Convolve, then Stop for a layer that is only one.
type Recurrence struct {
	segments []Segment
	states   []*cache.State
	lengths  []int
	tails    []*mlx.Array // of each sequence, the rows before the first one: [taps-1, channels]; nil without a convolution
	memories []*mlx.Array // of each sequence, the state of its recurrence in float32
	inPlace  bool         // no sequence is in a transaction
	fed      *mlx.Array   // the rows that were convolved
	ends     []*mlx.Array // the tails after the step
}

// Scan computes outputs [T, ...] of packed rows from inputs [T, ...], and then each segment's next state. States are
// overwritten if inPlace is set.
type Scan func(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array

// Recurrence begins a step of a layer that convolves rows x [T, channels] with a kernel of taps rows; 0 means that it
// has no convolution. memory is the shape of the state of its recurrence, in float32; nil means none.
func (b *Batch) Recurrence(layer int, x *mlx.Array, taps int, memory []int) *Recurrence {
	r := &Recurrence{segments: b.Segments, inPlace: true}
	for _, s := range b.Segments {
		c, ok := s.Seq.Layers[layer].(*cache.State)
		if !ok {
			panic(&mlx.Error{Message: fmt.Sprintf("recurrent layer %d has no recurrent state but %T", layer,
				s.Seq.Layers[layer])})
		}
		before, state := c.Arrays()
		if taps == 0 {
			before, state = nil, before
		} else if before == nil {
			before = mlx.Zeros(x.Thread(), x.DType(), taps-1, x.Dim(1))
		}
		if state == nil && memory != nil {
			state = mlx.Zeros(x.Thread(), mlx.Float32, memory...)
		}
		r.states, r.lengths = append(r.states, c), append(r.lengths, s.Len)
		r.tails, r.memories = append(r.tails, before), append(r.memories, state)
		r.inPlace = r.inPlace && !c.Trying()
	}
	return r
}

// Convolve returns the rows after a causal convolution of each channel with weight [taps, channels], and SiLU if silu
// is set.
func (r *Recurrence) Convolve(x, weight, bias *mlx.Array, silu bool) *mlx.Array {
	mixed := mlx.CausalConv(x, weight, bias, r.tails, silu, false, r.inPlace, r.lengths...)
	r.fed, r.ends = x, mixed[1:]
	return mixed[0]
}

// Scan returns the outputs of a scan over rows, and stores the state after it.
func (r *Recurrence) Scan(f Scan, in ...*mlx.Array) *mlx.Array {
	outputs := f(in, r.memories, r.inPlace, r.lengths...)
	r.advance(outputs[1:], f, in)
	return outputs[0]
}

// Stop stores the state of a layer that is only a convolution.
func (r *Recurrence) Stop() { r.advance(make([]*mlx.Array, len(r.states)), nil, nil) }

func (r *Recurrence) advance(memories []*mlx.Array, f Scan, in []*mlx.Array) {
	rows := in
	if r.fed != nil {
		rows = append([]*mlx.Array{r.fed}, in...)
	}
	for i, c := range r.states {
		if r.fed == nil {
			c.Advance(memories[i], nil, r.lengths[i])
		} else {
			c.Advance(r.ends[i], memories[i], r.lengths[i])
		}
		if !c.Trying() || r.lengths[i] == 1 {
			continue
		}
		s := r.segments[i]
		again := rerun{tail: r.tails[i], memory: r.memories[i], scan: f}
		for _, x := range rows {
			again.rows = append(again.rows, mlx.SliceAxis(x, 0, mlx.Range(s.Row, s.Row+s.Len)))
		}
		c.Redo(again.first, again.arrays(c.Offset() == r.lengths[i])...)
	}
}

// rerun holds the inputs for replaying a segment's first rows through the state. It needs no products with weights.
type rerun struct {
	tail, memory *mlx.Array
	rows         []*mlx.Array // those of the convolution, if there is one, then the inputs of the scan
	scan         Scan
}

// arrays returns the arrays that a rerun needs besides the cache's previous state, which does not exist at the start.
func (r rerun) arrays(start bool) []*mlx.Array {
	if !start {
		return r.rows
	}
	all := slices.Clone(r.rows)
	for _, x := range []*mlx.Array{r.tail, r.memory} {
		if x != nil {
			all = append(all, x)
		}
	}
	return all
}

// first returns the state after the first n rows, as [cache.State] keeps it. It overwrites the previous state.
func (r rerun) first(n int) (tail, memory *mlx.Array) {
	in := make([]*mlx.Array, len(r.rows))
	for i, x := range r.rows {
		in[i] = mlx.SliceAxis(x, 0, mlx.Range(0, n))
	}
	if r.tail == nil {
		return r.scan(in, []*mlx.Array{r.memory}, true, n)[1], nil
	}
	seen := mlx.Concatenate(0, r.tail, in[0])
	tail = mlx.Contiguous(mlx.SliceAxis(seen, 0, mlx.Range(n, n+r.tail.Dim(0))))
	if r.scan == nil {
		return tail, nil
	}
	return tail, r.scan(in[1:], []*mlx.Array{r.memory}, true, n)[1]
}

// Convolution takes NAME.weight [channels, 1, taps] as [taps, channels], and NAME.bias [channels] if biased is set.
func (w *Weights) Convolution(name string, channels, taps int, biased bool) (weight, bias *mlx.Array) {
	typed := func(a *mlx.Array, f func(*mlx.Array) *mlx.Array) *mlx.Array {
		if a == nil {
			return nil
		}
		return w.constant(a, func(a *mlx.Array) *mlx.Array { return mlx.AsType(f(a), w.DType) })
	}
	weight = typed(w.Take(name+".weight", channels, 1, taps), func(a *mlx.Array) *mlx.Array {
		return mlx.Contiguous(mlx.Transpose(mlx.Squeeze(a, 1)))
	})
	if biased {
		bias = typed(w.Take(name+".bias", channels), func(a *mlx.Array) *mlx.Array { return mlx.Contiguous(a) })
	}
	return weight, bias
}
