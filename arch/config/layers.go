package config

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch/table"
)

// SlidingOf returns which layers slide.
func SlidingOf(kinds []string) []bool {
	sliding := make([]bool, len(kinds))
	for i, kind := range kinds {
		sliding[i] = kind == SlidingAttention
	}
	return sliding
}

// ParsePattern returns which layers are sliding: those in layer_types, or all except every n-th, where n is
// sliding_window_pattern.
func ParsePattern(o Object, layers, def int) []bool {
	sliding := make([]bool, layers)
	kinds := o.Words("layer_types", layers, FullAttention, SlidingAttention)
	pattern := o.Integer("sliding_window_pattern", def, 1, MaxLayers)
	for i := range sliding {
		if kinds != nil {
			sliding[i] = kinds[i] == SlidingAttention
		} else {
			sliding[i] = (i+1)%pattern != 0
		}
	}
	return sliding
}

// Types of layers in configurations of hybrid models; see also FullAttention and LinearAttention.
const (
	MambaLayer     = "mamba"
	AttentionLayer = "attention"
)

// ConvLayer is the type of a layer that is a short convolution.
const ConvLayer = "conv"

// AddShortConv adds a gated short convolution. Ranks divide its channels.
func AddShortConv(t *table.Table, name string, taps int, hidden int64, bias bool) {
	channels := table.HeadRows(int(hidden))
	in := channels
	in.Sections = []int64{hidden, hidden, hidden}
	t.Linear(name+".in_proj", 3*hidden, hidden, bias, in)
	s := t.Add(name+".conv.weight", channels, hidden, 1, int64(taps))
	s.Reshape = [][]int64{{hidden, int64(taps), 1}, {hidden, int64(taps)}}
	if bias {
		t.Add(name+".conv.bias", channels, hidden)
	}
	t.Linear(name+".out_proj", hidden, hidden, bias, table.HeadColumns(int(hidden)))
}

// Layer types in layer_types.
const (
	FullAttention    = "full_attention"
	SlidingAttention = "sliding_attention"
	LinearAttention  = "linear_attention"
)

// ParseWindow reads the sliding window, and which layers have it: those in layer_types, or all from layer first on.
func ParseWindow(o Object, layers, first int) (window int, sliding []bool) {
	sliding = make([]bool, layers)
	kinds := o.Words("layer_types", layers, FullAttention, SlidingAttention)
	if !o.Bool("use_sliding_window", false) {
		return 0, sliding
	}
	if window = o.Integer("sliding_window", 4096, 1, MaxContext); !o.Has("sliding_window") {
		if _, null := o.Keys["sliding_window"]; null {
			return 0, sliding
		}
	}
	some := false
	for i := range sliding {
		if kinds != nil {
			sliding[i] = kinds[i] == SlidingAttention
		} else {
			sliding[i] = i >= first
		}
		some = some || sliding[i]
	}
	if !some {
		return 0, sliding
	}
	return window, sliding
}

// ParseSparse reads the number of experts, and which layers have them.
func ParseSparse(o Object, layers, def int) (experts int, sparse []bool) {
	// transformers 5 treats the two keys as synonyms.
	experts = o.Integer("num_experts", o.Integer("num_local_experts", def, 0, MaxExperts), 0, MaxExperts)
	step := o.Integer("decoder_sparse_step", 1, 1, MaxLayers)
	dense := o.Integers("mlp_only_layers", MaxLayers, 0, MaxLayers)
	sparse = make([]bool, layers)
	for i := range sparse {
		sparse[i] = experts > 0 && (i+1)%step == 0 && !slices.Contains(dense, i)
	}
	return experts, sparse
}

// ParseRotates reads which layers have a rope: those with a 1 in no_rope_layers, which despite its name lists the
// others as 0, or all but every no_rope_layer_interval-th.
func ParseRotates(o Object, layers int) []bool {
	const key = "no_rope_layers"
	rotates := make([]bool, layers)
	list := o.Integers(key, MaxLayers, 0, 1)
	every := o.Integer("no_rope_layer_interval", 4, 1, MaxLayers)
	if len(list) > 0 && len(list) < layers {
		o.Fail(key, fmt.Sprintf("have an element per layer, %d (it has %d)", layers, len(list)))
		return rotates
	}
	for i := range rotates {
		rotates[i] = (i+1)%every != 0
		if len(list) > 0 {
			rotates[i] = list[i] == 1
		}
	}
	return rotates
}
