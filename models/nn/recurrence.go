package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// recurrence is a step of a recurrent layer: each segment continues from the state of its sequence. A step is convolve,
// then scan, or stop for a layer that is only a convolution.
type recurrence struct {
	segments []Segment
	states   []*cache.State
	lengths  []int
	tails    []*mlx.Array // of each sequence, the rows before the first one: [taps-1, channels]
	memories []*mlx.Array // of each sequence, the state of its recurrence in float32
	inPlace  bool         // no sequence is in a transaction
	fed      *mlx.Array   // the rows that were convolved
	ends     []*mlx.Array // the tails after the step
}

// scan computes outputs [T, ...] of packed rows from inputs [T, ...], and then each segment's next state.
type scan func(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array

// recurrence begins a step of a layer that convolves rows x [T, channels] with a kernel of so many taps. memory is the
// shape of the state of its recurrence; nil means none.
func (b *Batch) recurrence(layer int, x *mlx.Array, taps int, memory []int) *recurrence {
	r := &recurrence{segments: b.Segments, inPlace: true}
	for _, s := range b.Segments {
		c, ok := s.Seq.Layers[layer].(*cache.State)
		if !ok {
			panic(&mlx.Error{Message: fmt.Sprintf("recurrent layer %d has no recurrent state but %T", layer,
				s.Seq.Layers[layer])})
		}
		before, state := c.Arrays()
		if before == nil {
			before = mlx.Zeros(x.Thread(), x.DType(), taps-1, x.Dim(1))
			if memory != nil {
				state = mlx.Zeros(x.Thread(), mlx.Float32, memory...)
			}
		}
		r.states, r.lengths = append(r.states, c), append(r.lengths, s.Len)
		r.tails, r.memories = append(r.tails, before), append(r.memories, state)
		r.inPlace = r.inPlace && !c.Trying()
	}
	return r
}

// convolve returns the rows after a causal convolution of each channel with weight [taps, channels], and SiLU if silu
// is set.
func (r *recurrence) convolve(x, weight, bias *mlx.Array, silu bool) *mlx.Array {
	mixed := mlx.CausalConv(x, weight, bias, r.tails, silu, false, r.inPlace, r.lengths...)
	r.fed, r.ends = x, mixed[1:]
	return mixed[0]
}

// scan returns the outputs of a scan over rows, and stores the state after it.
func (r *recurrence) scan(f scan, in ...*mlx.Array) *mlx.Array {
	outputs := f(in, r.memories, r.inPlace, r.lengths...)
	r.advance(outputs[1:], f, in)
	return outputs[0]
}

// stop stores the state of a layer that is only a convolution.
func (r *recurrence) stop() { r.advance(make([]*mlx.Array, len(r.states)), nil, nil) }

func (r *recurrence) advance(memories []*mlx.Array, f scan, in []*mlx.Array) {
	for i, c := range r.states {
		c.Advance(r.ends[i], memories[i], r.lengths[i])
		if !c.Trying() || r.lengths[i] == 1 {
			continue
		}
		s := r.segments[i]
		again := rerun{tail: r.tails[i], memory: r.memories[i], scan: f}
		for _, x := range append([]*mlx.Array{r.fed}, in...) {
			again.rows = append(again.rows, mlx.SliceAxis(x, 0, mlx.Range(s.Row, s.Row+s.Len)))
		}
		c.Redo(again.first, again.arrays(c.Offset() == r.lengths[i])...)
	}
}

// rerun holds the inputs for replaying a segment's first rows through the state. It needs no products with weights.
type rerun struct {
	tail, memory *mlx.Array
	rows         []*mlx.Array // those of the convolution, then the inputs of the scan
	scan         scan
}

// arrays returns the arrays that a rerun needs besides the cache's previous state, which does not exist at the start.
func (r rerun) arrays(start bool) []*mlx.Array {
	if !start {
		return r.rows
	}
	all := append([]*mlx.Array{r.tail}, r.rows...)
	if r.memory != nil {
		all = append(all, r.memory)
	}
	return all
}

// first returns the state after the first n rows. It overwrites the previous state.
func (r rerun) first(n int) (tail, memory *mlx.Array) {
	in := make([]*mlx.Array, len(r.rows))
	for i, x := range r.rows {
		in[i] = mlx.SliceAxis(x, 0, mlx.Range(0, n))
	}
	seen := mlx.Concatenate(0, r.tail, in[0])
	tail = mlx.Contiguous(mlx.SliceAxis(seen, 0, mlx.Range(n, n+r.tail.Dim(0))))
	if r.scan == nil {
		return tail, nil
	}
	return tail, r.scan(in[1:], []*mlx.Array{r.memory}, true, n)[1]
}
