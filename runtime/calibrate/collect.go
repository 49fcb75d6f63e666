package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/mlx"
)

// collector sums what it observes. It implements [nn.Observer].
type collector struct {
	block  int
	inputs map[string]*input    // by the sorted names of the tensors that read them
	known  map[string]bool      // tensors that have an input
	last   map[string][]float64 // mean squares at the last call of change
}

// input holds the sums of one input.
type input struct {
	width   int
	names   []string    // of the tensors that read it and no earlier one
	rows    []int64     // by expert
	squares []float64   // sums [experts, width]
	moments [][]float32 // means [n, n] of blocks
}

func newCollector(block int) *collector {
	return &collector{block: block, inputs: map[string]*input{}, known: map[string]bool{}}
}

// input returns the sums of the input that tensors share. It is nil if each of them has another input already.
func (c *collector) input(names []string, width, experts int) *input {
	names = slices.Sorted(slices.Values(names))
	key := strings.Join(names, " ")
	if in := c.inputs[key]; in != nil {
		return in
	}
	names = slices.DeleteFunc(names, func(n string) bool { return c.known[n] })
	if len(names) == 0 {
		return nil
	}
	in := &input{width: width, names: names, rows: make([]int64, experts), squares: make([]float64, experts*width)}
	c.add(key, in)
	return in
}

func (c *collector) add(key string, in *input) {
	c.inputs[key] = in
	for _, n := range in.names {
		c.known[n] = true
	}
}

// order lists the keys of the inputs, sorted.
func (c *collector) order() []string { return slices.Sorted(maps.Keys(c.inputs)) }

// Input implements [nn.Observer].
func (c *collector) Input(names []string, x *mlx.Array) {
	in := c.input(names, x.Dim(1), 1)
	if in == nil {
		return
	}
	x.Thread().Scope(func() {
		wide := mlx.AsType(x, mlx.Float32)
		before := in.rows[0]
		in.rows[0] += int64(x.Dim(0))
		for i, v := range mlx.Sum(mlx.Square(wide), false, 0).Float32s() {
			in.squares[i] += float64(v)
		}
		if c.block == 0 {
			return
		}
		at := 0
		for i, n := range statistics.Blocks(in.width, c.block) {
			part := mlx.SliceAxis(wide, 1, mlx.Range(at, at+n))
			sums := mlx.MatMul(mlx.Contiguous(mlx.SwapAxes(part, 0, 1)), mlx.Contiguous(part)).Float32s()
			if len(in.moments) == i {
				in.moments = append(in.moments, make([]float32, n*n))
			}
			keep, share := float32(float64(before)/float64(in.rows[0])), 1/float32(in.rows[0])
			for k, v := range sums {
				in.moments[i][k] = in.moments[i][k]*keep + v*share
			}
			at += n
		}
	})
}

// ExpertInput implements [nn.Observer].
func (c *collector) ExpertInput(name string, count int, x, chosen *mlx.Array) {
	in := c.input([]string{name}, x.Dim(1), count)
	if in == nil {
		return
	}
	x.Thread().Scope(func() {
		rows := mlx.AsType(x, mlx.Float32).Float32s()
		for i, e := range mlx.ToSlice[uint32](chosen) {
			in.rows[e]++
			sums := in.squares[int(e)*in.width:][:in.width]
			for k, v := range rows[i*in.width:][:in.width] {
				sums[k] += float64(v) * float64(v)
			}
		}
	})
}

// fold rounds the sums to what a state file holds: float32 means.
func (c *collector) fold() {
	for _, in := range c.inputs {
		for i := range in.squares {
			n := float64(in.rows[i/in.width])
			in.squares[i] = float64(float32(in.squares[i]/max(n, 1))) * n
		}
	}
}

// set returns the statistics. It shares the second moments with the collector.
func (c *collector) set(about statistics.About) *statistics.Set {
	s := statistics.New(about)
	for _, key := range c.order() {
		in := c.inputs[key]
		l := &statistics.Layer{Width: in.width, Rows: slices.Clone(in.rows), Squares: make([]float32, len(in.squares))}
		for i, v := range in.squares {
			l.Squares[i] = float32(v / max(float64(in.rows[i/in.width]), 1))
		}
		if in.moments != nil {
			l.Moments = func(i int) ([]float32, error) { return in.moments[i], nil }
		}
		s.Add(l, in.names...)
	}
	return s
}

// load sets the sums from a state.
func (c *collector) load(s *statistics.Set) error {
	names := map[*statistics.Layer][]string{}
	for _, name := range s.Tensors() {
		names[s.Layer(name)] = append(names[s.Layer(name)], name)
	}
	for l, names := range names {
		if key, ok := strings.CutPrefix(names[0], previous); ok {
			c.setLast(key, l.Squares)
			continue
		}
		in := &input{width: l.Width, names: names, rows: l.Rows, squares: make([]float64, len(l.Squares))}
		for i, v := range l.Squares {
			in.squares[i] = float64(v) * float64(l.Rows[i/l.Width])
		}
		if l.Moments != nil {
			for i := range statistics.Blocks(l.Width, c.block) {
				m, err := l.Moments(i)
				if err != nil {
					return err
				}
				in.moments = append(in.moments, m)
			}
		}
		c.add(strings.Join(names, " "), in)
	}
	return nil
}

func (c *collector) setLast(key string, squares []float32) {
	if c.last == nil {
		c.last = map[string][]float64{}
	}
	c.last[key] = make([]float64, len(squares))
	for i, v := range squares {
		c.last[key][i] = float64(v)
	}
}

// check returns an error if an input is not finite.
func (c *collector) check() error {
	for _, key := range c.order() {
		for _, v := range c.inputs[key].squares {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: the inputs of %s are not finite in the type that the model computes in; use --float32",
					ErrText, key)
			}
		}
	}
	return nil
}
