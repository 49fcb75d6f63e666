package config

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/table"
)

// SSM holds the sizes of Mamba 2 layers, a selective scan.
type SSM struct {
	Heads, HeadDim int
	Groups         int // of B and C, and of the output norm; divides Heads
	State          int // size of a head's state for each channel
	Kernel         int // size of the convolution over x, B and C
	ConvBias       bool
	Bias           bool // of the input projection
	OutputBias     bool
	// MinStep and MaxStep limit the step sizes; MaxStep 0 = no limit.
	MinStep, MaxStep float64
	Norm             GatedNorm
	// Multipliers are the factors of what the input projection gives: gates, x, B, C and steps; nil = none.
	Multipliers []float64
}

// GatedNorm is where the output of a layer is normalized.
type GatedNorm string

// Places of the output norm.
const (
	NormAfterGate  GatedNorm = ""
	NormBeforeGate GatedNorm = "before the gate"
	NoNorm         GatedNorm = "none"
)

// Width returns the total width of the heads.
func (d SSM) Width() int { return d.Heads * d.HeadDim }

// Channels returns the width of the convolution.
func (d SSM) Channels() int { return d.Width() + 2*d.Groups*d.State }

// LayerState returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d SSM) LayerState() LayerState {
	return LayerState{Fixed: 2*int64(d.Width())*int64(d.State) + int64(d.Kernel-1)*int64(d.Channels())}
}

// SSMKeys are the keys that configurations have for the sizes of Mamba 2 layers.
type SSMKeys struct {
	Heads, Dim, Groups, State, Kernel, ConvBias, Bias, OutputBias string
}

// SSMDefaults are the values of absent keys.
type SSMDefaults struct{ Heads, Dim, Groups, State int }

// HybridSSM are the keys that most hybrid models have.
var HybridSSM = SSMKeys{
	Heads: "mamba_n_heads", Dim: "mamba_d_head", Groups: "mamba_n_groups", State: "mamba_d_state",
	Kernel: "mamba_d_conv", ConvBias: "mamba_conv_bias", Bias: "mamba_proj_bias", OutputBias: "mamba_proj_bias",
}

// maxStateSize bounds the size of a channel's state.
const maxStateSize = 1 << 12

// ParseSSM reads the sizes of Mamba 2 layers whose heads have width channels in all; 0 = any.
func ParseSSM(o Object, k SSMKeys, d SSMDefaults, width int) SSM {
	m := SSM{
		Heads:      o.Integer(k.Heads, d.Heads, 1, MaxHeads),
		Groups:     o.Integer(k.Groups, d.Groups, 1, MaxHeads),
		State:      o.Integer(k.State, d.State, 1, maxStateSize),
		Kernel:     o.Integer(k.Kernel, 4, 2, MaxTaps),
		ConvBias:   o.Bool(k.ConvBias, true),
		Bias:       o.Bool(k.Bias, false),
		OutputBias: o.Bool(k.OutputBias, false),
	}
	if d.Dim == 0 && width%m.Heads == 0 {
		d.Dim = width / m.Heads
	}
	if m.HeadDim = d.Dim; o.text(k.Dim) != "auto" {
		m.HeadDim = o.Integer(k.Dim, d.Dim, 1, MaxWidth/64)
	}
	if width > 0 && m.Width() != width {
		o.Fail(k.Heads, fmt.Sprintf("give heads of %d channels in all (it gives %d heads of %d)", width, m.Heads, m.HeadDim))
	}
	if m.Heads%m.Groups != 0 {
		o.Fail(k.Groups, fmt.Sprintf("divide %s = %d", k.Heads, m.Heads))
	}
	m.MinStep, m.MaxStep = o.steps("time_step_limit")
	return m
}

// text returns a string, or "" if the key is absent or has another type.
func (o Object) text(key string) (s string) {
	if o.Has(key) {
		_ = json.Unmarshal(o.Keys[key], &s) // "" if it is a number
	}
	return s
}

// steps reads the limits of step sizes: a list of the least and the most, which is 0 for infinity. transformers writes
// infinity as an object.
func (o Object) steps(key string) (least, most float64) {
	list := o.List(key, 2)
	if list == nil {
		return 0, 0
	}
	var infinity struct {
		Float string `json:"__float__"`
	}
	ok := len(list) == 2
	if ok {
		least, ok = AsNumber(list[0])
	}
	if ok && (json.Unmarshal(list[1], &infinity) != nil || infinity.Float != "Infinity") {
		most, ok = AsNumber(list[1])
		ok = ok && most > 0
		if most > math.MaxFloat32 {
			most = 0 // no float32 exceeds it
		}
	}
	if !ok || least < 0 || most > 0 && least > most || math.Max(least, most) > MaxNumber {
		o.Fail(key, "be the least and the largest step, such as [0.0, 100.0]")
		return 0, 0
	}
	return least, most
}

// AddTo adds a Mamba 2 layer. Ranks divide it by groups: the heads of a group read the same B and C, and are normalized
// together.
func (d SSM) AddTo(t *table.Table, name string, hidden int64) {
	groups, width, state := table.HeadRows(d.Groups), int64(d.Width()), int64(d.Groups)*int64(d.State)
	in, conv := groups, groups
	conv.Sections = []int64{width, state, state}
	in.Sections = []int64{width, width, state, state, int64(d.Heads)}
	channels, kernel := int64(d.Channels()), int64(d.Kernel)
	t.Linear(name+".in_proj", width+channels+int64(d.Heads), hidden, d.Bias, in)
	s := t.Add(name+".conv1d.weight", conv, channels, 1, kernel)
	s.Reshape = [][]int64{{channels, kernel, 1}, {channels, kernel}}
	if d.ConvBias {
		t.Add(name+".conv1d.bias", conv, channels)
	}
	for _, part := range []string{".dt_bias", ".A_log", ".D"} {
		s := t.Add(name+part, groups, int64(d.Heads))
		s.Reshape = [][]int64{{int64(d.Heads), 1}}
	}
	if d.Norm != NoNorm {
		s := t.Add(name+".norm.weight", groups, width)
		s.Reshape = [][]int64{{int64(d.Groups), width / int64(d.Groups)}}
	}
	t.Linear(name+".out_proj", hidden, width, d.OutputBias, table.HeadColumns(d.Groups))
}
