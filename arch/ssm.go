package arch

import (
	"encoding/json"
	"fmt"
	"math"
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

// state returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d SSM) state() LayerState {
	return LayerState{Fixed: 2*int64(d.Width())*int64(d.State) + int64(d.Kernel-1)*int64(d.Channels())}
}

// ssmKeys are the keys that configurations have for the sizes of Mamba 2 layers.
type ssmKeys struct {
	heads, dim, groups, state, kernel, convBias, bias, outputBias string
}

// ssmDefaults are the values of absent keys.
type ssmDefaults struct{ heads, dim, groups, state int }

// hybridSSM are the keys that most hybrid models have.
var hybridSSM = ssmKeys{
	heads: "mamba_n_heads", dim: "mamba_d_head", groups: "mamba_n_groups", state: "mamba_d_state",
	kernel: "mamba_d_conv", convBias: "mamba_conv_bias", bias: "mamba_proj_bias", outputBias: "mamba_proj_bias",
}

// maxStateSize bounds the size of a channel's state.
const maxStateSize = 1 << 12

// parseSSM reads the sizes of Mamba 2 layers whose heads have width channels in all; 0 = any.
func parseSSM(o object, k ssmKeys, d ssmDefaults, width int) SSM {
	m := SSM{
		Heads:      o.integer(k.heads, d.heads, 1, maxHeads),
		Groups:     o.integer(k.groups, d.groups, 1, maxHeads),
		State:      o.integer(k.state, d.state, 1, maxStateSize),
		Kernel:     o.integer(k.kernel, 4, 2, maxTaps),
		ConvBias:   o.boolean(k.convBias, true),
		Bias:       o.boolean(k.bias, false),
		OutputBias: o.boolean(k.outputBias, false),
	}
	if d.dim == 0 && width%m.Heads == 0 {
		d.dim = width / m.Heads
	}
	if m.HeadDim = d.dim; o.text(k.dim) != "auto" {
		m.HeadDim = o.integer(k.dim, d.dim, 1, maxWidth/64)
	}
	if width > 0 && m.Width() != width {
		o.fail(k.heads, fmt.Sprintf("give heads of %d channels in all (it gives %d heads of %d)", width, m.Heads, m.HeadDim))
	}
	if m.Heads%m.Groups != 0 {
		o.fail(k.groups, fmt.Sprintf("divide %s = %d", k.heads, m.Heads))
	}
	m.MinStep, m.MaxStep = o.steps("time_step_limit")
	return m
}

// text returns a string, or "" if the key is absent or has another type.
func (o object) text(key string) (s string) {
	if o.has(key) {
		_ = json.Unmarshal(o.raw[key], &s) // "" if it is a number
	}
	return s
}

// steps reads the limits of step sizes: a list of the least and the most, which is 0 for infinity. transformers writes
// infinity as an object.
func (o object) steps(key string) (least, most float64) {
	list := o.list(key, 2)
	if list == nil {
		return 0, 0
	}
	var infinity struct {
		Float string `json:"__float__"`
	}
	ok := len(list) == 2
	if ok {
		least, ok = asNumber(list[0])
	}
	if ok && (json.Unmarshal(list[1], &infinity) != nil || infinity.Float != "Infinity") {
		most, ok = asNumber(list[1])
		ok = ok && most > 0
		if most > math.MaxFloat32 {
			most = 0 // no float32 exceeds it
		}
	}
	if !ok || least < 0 || most > 0 && least > most || math.Max(least, most) > maxNumber {
		o.fail(key, "be the least and the largest step, such as [0.0, 100.0]")
		return 0, 0
	}
	return least, most
}

// ssm adds a Mamba 2 layer. Ranks divide it by groups: the heads of a group read the same B and C, and are normalized
// together.
func (t *Table) ssm(name string, d SSM, hidden int64) {
	groups, width, state := headRows(d.Groups), int64(d.Width()), int64(d.Groups)*int64(d.State)
	in, conv := groups, groups
	conv.Sections = []int64{width, state, state}
	in.Sections = []int64{width, width, state, state, int64(d.Heads)}
	channels, kernel := int64(d.Channels()), int64(d.Kernel)
	t.linear(name+".in_proj", width+channels+int64(d.Heads), hidden, d.Bias, in)
	s := t.add(name+".conv1d.weight", conv, channels, 1, kernel)
	s.Reshape = [][]int64{{channels, kernel, 1}, {channels, kernel}}
	if d.ConvBias {
		t.add(name+".conv1d.bias", conv, channels)
	}
	for _, part := range []string{".dt_bias", ".A_log", ".D"} {
		s := t.add(name+part, groups, int64(d.Heads))
		s.Reshape = [][]int64{{int64(d.Heads), 1}}
	}
	if d.Norm != NoNorm {
		s := t.add(name+".norm.weight", groups, width)
		s.Reshape = [][]int64{{int64(d.Groups), width / int64(d.Groups)}}
	}
	t.linear(name+".out_proj", hidden, width, d.OutputBias, headColumns(d.Groups))
}
