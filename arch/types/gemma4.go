package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
)

// Gemma4 is the configuration of the text model of model type "gemma4", in all published variants, alone or in a
// multimodal checkpoint. The towers are not imported. It has norms before and after attention and MLP, with plain
// weights; query and key norms per head, and a value norm without a weight; unscaled attention scores; embeddings
// multiplied by sqrt(hidden); and a scalar that multiplies each layer's output. Absent keys have the defaults of
// transformers 5.23; sizes only inside text_config.
type Gemma4 struct {
	config.Common        // HeadDim and KVHeads are of sliding layers
	Unified       bool   // a checkpoint without towers: images and audio enter through small projections
	Intermediate  int    // of layers with their own keys and values
	Activation    string // always "gelu_pytorch_tanh"
	Window        int    // positions that a sliding layer attends to, including its own
	Layer         []Gemma4Layer
	Rope          config.Rope // of full layers
	SlidingRope   config.Rope
	LogitCap      float64 // final_logit_softcapping; 0 = none
	// KEqV: full layers have no v_proj. Their values are the keys before norm and rope.
	KEqV bool
	// Per-layer embeddings: each layer adds a token vector of its own, through a gate of width PerLayerHidden. 0 = none.
	PerLayerHidden, PerLayerVocab int
	// Experts run in parallel with the dense MLP of every layer; Count 0 = none. The router's probabilities are a softmax
	// over the selected experts.
	Experts config.Experts
}

// Gemma4Layer holds the properties that differ between the layers of a [Gemma4].
type Gemma4Layer struct {
	Sliding      bool
	HeadDim      int
	KVHeads      int
	Intermediate int
	// KV is the layer whose keys and values this layer attends to: itself or an earlier layer of its type. In an assistant
	// it is -1: all layers attend to the target's last layer of their type.
	KV int
}

// Shared reports whether layer i has no keys and values of its own.
func (m *Gemma4) Shared(i int) bool { return m.Layer[i].KV != i }

func init() {
	arch.Register(arch.Arch{
		ModelType: "gemma4",
		Aliases:   []string{"gemma4_text", "gemma4_unified", "gemma4_unified_text"},
		Architectures: []string{
			"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM",
			"Gemma4UnifiedForConditionalGeneration", "Gemma4UnifiedForCausalLM",
		},
		PerLayer: true,
		GGUF:     []gguf.Map{ggufGemma4},
		Chat:     &arch.Chat{Marks: []string{"gemma4"}, Parser: "gemma4", Renderer: "gemma4", Thinks: true},
		TextOnly: true,
		Wide:     true,
		Idle: []arch.Idle{
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
			{Why: "layers have no embeddings of their own", Keys: []string{"vocab_size_per_layer_input"}},
		},
		Docs: arch.Docs{
			Variants: "E2B and E4B (per-layer embeddings, shared keys and values), 12B, 31B (keys serve as values), " +
				"26B-A4B (experts)",
			Rules: "generic, with own rules for embeddings, values and down projections",
			Draft: "`gemma4_assistant`",
		},
	}, ParseGemma4)
}

// ParseGemma4 parses the config.json of a gemma4 model.
func ParseGemma4(data []byte) (*Gemma4, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := parseGemma4(top, o, "Gemma4ForConditionalGeneration", false)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseGemma4 parses a text model. An assistant's has no keys and values at all.
func parseGemma4(top, o config.Object, class string, assistant bool) *Gemma4 {
	unified := isUnified(top) || isUnified(o)
	d := config.Defaults{
		Class: class, Vocab: 262144, Hidden: 2304, Layers: 30, Heads: 8, KVHeads: 4, HeadDim: 256, Context: 131072,
		NormEps: 1e-6,
		Tied:    true, BOS: []int32{2}, EOS: []int32{1},
	}
	window, perLayer := 512, 256
	if unified {
		d.Context, window, perLayer = 262144, 1024, 0
	}
	if assistant {
		perLayer = 0
	}
	m := &Gemma4{
		Common:         config.ParseCommon(top, o, d),
		Unified:        unified,
		Intermediate:   o.Size("intermediate_size", 9216, config.MaxWidth/2),
		Activation:     o.Activation("hidden_activation", config.GELU...),
		Window:         o.Integer("sliding_window", window, 1, config.MaxContext),
		LogitCap:       o.Above("final_logit_softcapping", 0, 0),
		KEqV:           o.Bool("attention_k_eq_v", false),
		PerLayerHidden: o.Integer("hidden_size_per_layer_input", perLayer, 0, config.MaxHeadDim),
	}
	if m.PerLayerHidden > 0 {
		m.PerLayerVocab = o.Integer("vocab_size_per_layer_input", 262144, 1, config.MaxVocab)
	}
	if o.String("use_bidirectional_attention", "") == "all" {
		o.Fail("use_bidirectional_attention", "not be all: encoders are not supported")
	}
	if o.Bool("enable_moe_block", false) {
		m.Experts = config.Experts{
			Count:        o.Required("num_experts", 1, config.MaxExperts),
			PerToken:     o.Required("top_k_experts", 1, config.MaxExperts),
			Intermediate: o.Required("moe_intermediate_size", 1, config.MaxWidth),
			NormTopK:     true,
		}
		o.CheckExperts("num_experts", m.Experts, m.Hidden)
	}
	m.parseLayers(o, assistant)
	m.Rope = config.ParseLayerRope(o, config.FullAttention, config.Object{}, m.Context, config.RopeOptions{
		Types: gemma4Ropes, Theta: 1e6, HeadDim: m.full().HeadDim, Kind: config.RopeProportional, Partial: 0.25,
		Inherit: true,
	})
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context,
		config.RopeOptions{Types: gemma4Ropes, Theta: 1e4, HeadDim: m.HeadDim, Inherit: true})
	return m
}

var gemma4Ropes = append([]config.RopeType{config.RopeProportional}, config.DecoderRopes...)

func isUnified(o config.Object) bool {
	switch o.String("model_type", "") {
	case "gemma4_unified", "gemma4_unified_text", "gemma4_unified_assistant":
		return true
	}
	return false
}

// full returns the last layer, which is always a full one.
func (m *Gemma4) full() Gemma4Layer { return m.Layer[len(m.Layer)-1] }

// parseLayers reads the layer types, their head sizes and counts in both key styles, and which layers share keys.
func (m *Gemma4) parseLayers(o config.Object, assistant bool) {
	sliding := config.ParsePattern(o, m.Layers, 6)
	sliding[m.Layers-1] = false // as in transformers, whatever layer_types says
	shared := o.Integer("num_kv_shared_layers", 0, 0, m.Layers)
	if assistant {
		if shared == 0 {
			shared = m.Layers
		}
		if shared != m.Layers {
			o.Fail("num_kv_shared_layers",
				fmt.Sprintf("be num_hidden_layers = %d: an assistant has no keys of its own", m.Layers))
		}
	}
	wide := o.Bool("use_double_wide_mlp", false)
	m.Layer = make([]Gemma4Layer, m.Layers)
	for i := range m.Layer {
		l := Gemma4Layer{Sliding: sliding[i], HeadDim: m.HeadDim, KVHeads: m.KVHeads, Intermediate: m.Intermediate}
		if wide && i >= m.Layers-shared {
			l.Intermediate *= 2
		}
		m.Layer[i] = l
	}
	m.share(o, shared, assistant)
	if o.Has("per_layer_config") {
		m.perLayerConfig(o)
	} else {
		m.globalKeys(o)
	}
	for i, l := range m.Layer {
		if m.Heads%l.KVHeads != 0 && o.Failed() == nil {
			*o.Err = config.Errorf("num_key_value_heads = %d in layer %d: must divide num_attention_heads = %d",
				l.KVHeads, i, m.Heads)
		}
	}
}

// share lets the last layers attend to the keys and values of the last layer of their type before them. An assistant
// has no such layer.
func (m *Gemma4) share(o config.Object, shared int, assistant bool) {
	last := map[bool]int{true: -1, false: -1} // last layer with its own keys, by sliding
	for i := range m.Layer {
		l := &m.Layer[i]
		if l.KV = i; i < m.Layers-shared {
			last[l.Sliding] = i
		} else if l.KV = last[l.Sliding]; l.KV < 0 && !assistant {
			o.Fail("num_kv_shared_layers", fmt.Sprintf("leave a layer of the type of layer %d that has keys", i))
		}
	}
}

// globalKeys reads the published keys of full layers: they have wider heads, and fewer key heads if keys serve as
// values.
func (m *Gemma4) globalKeys(o config.Object) {
	dim := o.Integer("global_head_dim", 512, 1, config.MaxHeadDim)
	if dim%2 != 0 {
		o.Fail("global_head_dim", "be even")
	}
	kv := o.Integer("num_global_key_value_heads", m.KVHeads, 1, config.MaxHeads)
	for i := range m.Layer {
		if l := &m.Layer[i]; !l.Sliding {
			l.HeadDim = dim
			if m.KEqV {
				l.KVHeads = kv
			}
		}
	}
}

// perLayerConfig reads the key that transformers 5 writes instead: overrides by layer number. Layers of one type must
// be equal, because they share rope frequencies and keys.
func (m *Gemma4) perLayerConfig(o config.Object) {
	all, _ := o.Object("per_layer_config")
	for _, key := range config.SortedKeys(all.Keys) {
		in, _ := all.Object(key)
		i, ok := config.AsInteger([]byte(trimZeros(key)))
		if !ok || i < 0 || i >= int64(m.Layers) {
			all.Fail(key, fmt.Sprintf("be for a layer from 0 to %d", m.Layers-1))
			return
		}
		for _, k := range config.SortedKeys(in.Keys) {
			if k != "head_dim" && k != "num_key_value_heads" {
				in.Fail(k, "not differ between layers")
			}
		}
		l := &m.Layer[i]
		l.HeadDim = in.Integer("head_dim", l.HeadDim, 1, config.MaxHeadDim)
		if l.HeadDim%2 != 0 {
			in.Fail("head_dim", "be even")
		}
		l.KVHeads = in.Integer("num_key_value_heads", l.KVHeads, 1, config.MaxHeads)
	}
	first := map[bool]Gemma4Layer{}
	for i, l := range m.Layer {
		f, ok := first[l.Sliding]
		if !ok {
			first[l.Sliding] = l
		} else if f.HeadDim != l.HeadDim || f.KVHeads != l.KVHeads {
			o.Fail("per_layer_config", fmt.Sprintf("leave layers of one type alike (layer %d differs)", i))
			return
		}
	}
	if l, ok := first[true]; ok {
		m.HeadDim, m.KVHeads = l.HeadDim, l.KVHeads
	}
}

// trimZeros turns "05", as transformers 5 pads layer numbers, into a JSON number.
func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

// LastKV returns the last sliding or full layer that has its own keys and values, or -1 for none.
func (m *Gemma4) LastKV(sliding bool) int {
	last := -1
	for i, l := range m.Layer {
		if l.Sliding == sliding && l.KV == i {
			last = i
		}
	}
	return last
}

// Carried implements [arch.Carrier]: the embeddings of the layers that follow.
func (m *Gemma4) Carried(layer int) int64 {
	return int64(m.Hidden) + int64(m.Layers-layer)*int64(m.PerLayerHidden)
}

// Link implements [arch.Linked]: layers read the keys and values of earlier ones.
func (m *Gemma4) Link(i int) int { return m.Layer[i].KV }

func (m *Gemma4) Borrowed(int) string { return "" }
