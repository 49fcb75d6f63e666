package arch

import "math"

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

// state returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d ChannelSSM) state() LayerState {
	return LayerState{Fixed: 2*int64(d.Width)*int64(d.State) + int64(d.Kernel-1)*int64(d.Width)}
}

// parseChannelSSM reads the sizes of Mamba layers. Its keys have the prefix of hybrid models or none.
func parseChannelSSM(o object, k ssmKeys, rank, expand string, hidden int) ChannelSSM {
	d := ChannelSSM{
		Width:    o.integer(expand, 2, 1, 64) * hidden,
		State:    o.integer(k.state, 16, 1, maxStateSize),
		Rank:     int(math.Ceil(float64(hidden) / 16)),
		Kernel:   o.integer(k.kernel, 4, 2, maxTaps),
		ConvBias: o.boolean(k.convBias, true),
		Bias:     o.boolean(k.bias, false),
	}
	if o.text(rank) != "auto" {
		d.Rank = o.integer(rank, d.Rank, 1, maxWidth)
	}
	return d
}

// channelSSM adds a Mamba layer. Ranks do not divide it: its steps need all channels.
func (t *Table) channelSSM(name string, d ChannelSSM, hidden int64) {
	width, state, rank, kernel := int64(d.Width), int64(d.State), int64(d.Rank), int64(d.Kernel)
	t.linear(name+".in_proj", 2*width, hidden, d.Bias, replicated)
	s := t.add(name+".conv1d.weight", replicated, width, 1, kernel)
	s.Reshape = [][]int64{{width, kernel, 1}, {width, kernel}}
	if d.ConvBias {
		t.add(name+".conv1d.bias", replicated, width)
	}
	t.linear(name+".x_proj", rank+2*state, width, false, replicated)
	t.linear(name+".dt_proj", width, rank, true, replicated)
	t.add(name+".A_log", replicated, width, state)
	t.add(name+".D", replicated, width)
	if d.Norms {
		t.norm(name+".dt_layernorm", rank, false)
		t.norm(name+".b_layernorm", state, false)
		t.norm(name+".c_layernorm", state, false)
	}
	t.linear(name+".out_proj", hidden, width, d.Bias, replicated)
}
