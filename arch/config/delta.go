package config

import (
	"fmt"

	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// AddSplitConv adds the convolution of a gated delta net that is published as three tensors. transformers 5.23 writes
// these with a third of the channels each, whatever the sizes of keys and values are; mlx-lm swaps the last two axes.
func (d GatedDelta) AddSplitConv(t *table.Table, name string) {
	keys, values, kernel := int64(d.Keys()), int64(d.Values()), int64(d.Kernel)
	by := table.HeadRows(d.KeyHeads)
	by.Sections = []int64{keys, keys, values}
	channels := 2*keys + values
	s := t.Add(name+".conv1d.weight", by, channels, 1, kernel)
	s.Reshape = [][]int64{{channels, kernel, 1}, {channels, kernel}}
	s.Layout = table.Fused
	names := []string{name + ".q_conv1d.weight", name + ".k_conv1d.weight", name + ".v_conv1d.weight"}
	form := func(layout string, rows ...int64) {
		for _, shape := range [][]int64{{1, kernel}, {kernel, 1}} {
			f := table.Form{Layout: layout, Make: table.Stack, Count: 1, Names: names}
			for _, n := range rows {
				f.Shapes = append(f.Shapes, []int64{n, shape[0], shape[1]})
			}
			s.Forms = append(s.Forms, f)
		}
	}
	form(table.Unfused, keys, keys, values)
	if third := (channels + 2) / 3; values != keys && channels > 2*third {
		form(table.InThirds, third, third, channels-2*third)
	}
}

// GatedDelta holds the sizes of gated delta layers. There are as many query heads as key heads.
type GatedDelta struct {
	KeyHeads, ValueHeads int // KeyHeads divides ValueHeads
	KeyDim, ValueDim     int // size of a head
	Kernel               int // size of the convolution over queries, keys and values
	// Negative: an update may be up to twice the difference to the prediction, which allows negative eigenvalues.
	Negative bool
	// SigmoidGate: the gate of the output is a sigmoid, not SiLU.
	SigmoidGate bool
}

// Keys returns the total width of the key heads.
func (d GatedDelta) Keys() int { return d.KeyHeads * d.KeyDim }

// Values returns the total width of the value heads.
func (d GatedDelta) Values() int { return d.ValueHeads * d.ValueDim }

// LayerState returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d GatedDelta) LayerState() LayerState {
	matrices := int64(d.ValueHeads) * int64(d.ValueDim) * int64(d.KeyDim)
	return LayerState{Fixed: 2*matrices + int64(d.Kernel-1)*int64(2*d.Keys()+d.Values())}
}

// Check reports heads of values that the heads of keys cannot share evenly.
func (d GatedDelta) Check(o Object) {
	if d.ValueHeads%d.KeyHeads != 0 {
		o.Fail("linear_num_value_heads", fmt.Sprintf("be a multiple of linear_num_key_heads = %d", d.KeyHeads))
	}
}

// DeltaRules are the rules of models with gated delta nets. The projections of decay and step size, whose names have
// the given ends, keep their type: they have only one row per head and control how long the state remembers.
func DeltaRules(layers int, ends ...string) precision.Rules {
	return precision.Generic(layers, precision.Rule{
		Name: "decay and step of a gated delta net", Of: precision.Quantized, To: []precision.Target{precision.Source},
		Ends: ends,
	})
}

// AddTo adds a gated delta net. Its input projections are published as four tensors, or as two fused ones in
// Qwen3-Next. The rows of a fused tensor are ordered by key head: the head's queries, keys, values and gates in one
// tensor, its beta and alpha in the other.
func (d GatedDelta) AddTo(t *table.Table, name string, hidden int64) {
	heads, key := int64(d.KeyHeads), int64(d.KeyDim)
	perHead := int64(d.ValueHeads / d.KeyHeads) // value heads per key head
	value := perHead * int64(d.ValueDim)
	block := 2*key + 2*value
	qkvz, ba := []int64{heads * block, hidden}, []int64{2 * int64(d.ValueHeads), hidden}
	rows := func(begin, count, step int64) table.Run {
		return table.Run{Begin: begin * hidden, Count: count * hidden, Step: step * hidden, Times: heads}
	}
	project := func(suffix string, by table.Split, out int64, from string, shape []int64, runs ...table.Run) {
		s := t.Add(name+suffix, by, out, hidden)
		s.Layout, s.Group = table.Unfused, name+from // GGUF files fuse one of the two
		s.Forms = []table.Form{{
			Layout: table.Fused, Make: table.Gather, Count: 1, Names: []string{name + from}, Shapes: [][]int64{shape},
			Runs: runs,
		}}
	}
	channels := 2*int64(d.Keys()) + int64(d.Values())
	byHead := table.HeadRows(d.KeyHeads)
	qkv := byHead
	qkv.Sections = []int64{int64(d.Keys()), int64(d.Keys()), int64(d.Values())}
	project(".in_proj_qkv.weight", qkv, channels, ".in_proj_qkvz.weight", qkvz,
		rows(0, key, block), rows(key, key, block), rows(2*key, value, block))
	project(".in_proj_z.weight", byHead, int64(d.Values()), ".in_proj_qkvz.weight", qkvz, rows(2*key+value, value, block))
	project(".in_proj_b.weight", byHead, int64(d.ValueHeads), ".in_proj_ba.weight", ba, rows(0, perHead, 2*perHead))
	project(".in_proj_a.weight", byHead, int64(d.ValueHeads), ".in_proj_ba.weight", ba, rows(perHead, perHead, 2*perHead))
	conv := t.Add(name+".conv1d.weight", qkv, channels, 1, int64(d.Kernel))
	conv.Reshape = [][]int64{{channels, int64(d.Kernel), 1}, {channels, int64(d.Kernel)}}
	t.Add(name+".dt_bias", byHead, int64(d.ValueHeads))
	t.Add(name+".A_log", byHead, int64(d.ValueHeads))
	t.Norm(name+".norm", int64(d.ValueDim), false)
	t.Linear(name+".out_proj", hidden, int64(d.Values()), false, table.HeadColumns(d.KeyHeads))
}
