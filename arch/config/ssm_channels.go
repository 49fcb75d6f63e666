package config

import (
	"math"

	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// ChannelSSM holds the sizes of Mamba layers, a selective scan whose step is another for each channel.
type ChannelSSM struct {
	Width    int // number of channels
	State    int // size of a channel's state
	Rank     int // width of what the steps are made from
	Kernel   int // size of the convolution
	ConvBias bool
	Bias     bool // of the projections of input and output
	Norms    bool // RMSNorms of what the steps are made from, of B and of C
}

// LayerState returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d ChannelSSM) LayerState() LayerState {
	return LayerState{Fixed: 2*int64(d.Width)*int64(d.State) + int64(d.Kernel-1)*int64(d.Width)}
}

// ParseChannelSSM reads the sizes of Mamba layers. Its keys have the prefix of hybrid models or none.
func ParseChannelSSM(o Object, k SSMKeys, rank, expand string, hidden int) ChannelSSM {
	d := ChannelSSM{
		Width:    o.Integer(expand, 2, 1, 64) * hidden,
		State:    o.Integer(k.State, 16, 1, maxStateSize),
		Rank:     int(math.Ceil(float64(hidden) / 16)),
		Kernel:   o.Integer(k.Kernel, 4, 2, MaxTaps),
		ConvBias: o.Bool(k.ConvBias, true),
		Bias:     o.Bool(k.Bias, false),
	}
	if o.text(rank) != "auto" {
		d.Rank = o.Integer(rank, d.Rank, 1, MaxWidth)
	}
	return d
}

// AddTo adds a Mamba layer. Ranks do not divide it: its steps need all channels.
func (d ChannelSSM) AddTo(t *table.Table, name string, hidden int64) {
	width, state, rank, kernel := int64(d.Width), int64(d.State), int64(d.Rank), int64(d.Kernel)
	t.Linear(name+".in_proj", 2*width, hidden, d.Bias, table.Whole)
	s := t.Add(name+".conv1d.weight", table.Whole, width, 1, kernel)
	s.Reshape = [][]int64{{width, kernel, 1}, {width, kernel}}
	if d.ConvBias {
		t.Add(name+".conv1d.bias", table.Whole, width)
	}
	t.Linear(name+".x_proj", rank+2*state, width, false, table.Whole)
	t.Linear(name+".dt_proj", width, rank, true, table.Whole)
	t.Add(name+".A_log", table.Whole, width, state)
	t.Add(name+".D", table.Whole, width)
	if d.Norms {
		t.Norm(name+".dt_layernorm", rank, false)
		t.Norm(name+".b_layernorm", state, false)
		t.Norm(name+".c_layernorm", state, false)
	}
	t.Linear(name+".out_proj", hidden, width, d.Bias, table.Whole)
}

// ChannelRules are the rules of models with selective scans of channels: the small projections that give steps, B and C
// keep their type, as they control how long the state remembers.
func ChannelRules(layers int) precision.Rules {
	return precision.Generic(layers, precision.Rule{
		Name: "steps, B and C of a selective scan", Of: precision.Quantized, To: []precision.Target{precision.Source},
		Ends: []string{".x_proj.weight", ".dt_proj.weight", ".A_log"},
	}, precision.Rule{Name: "decides in float32", Of: precision.Casts, To: []precision.Target{precision.Source},
		Ends: []string{".dt_proj.bias"}})
}
