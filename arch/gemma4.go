package arch

import "fmt"

// Gemma4 is the configuration of the text model of model type "gemma4", in all published variants, alone or in a
// multimodal checkpoint. The towers are not imported. It has norms before and after attention and MLP, with plain
// weights; query and key norms per head, and a value norm without a weight; unscaled attention scores; embeddings
// multiplied by sqrt(hidden); and a scalar that multiplies each layer's output. Absent keys have the defaults of
// transformers 5.23; sizes only inside text_config.
type Gemma4 struct {
	Common              // HeadDim and KVHeads are of sliding layers
	Unified      bool   // a checkpoint without towers: images and audio enter through small projections
	Intermediate int    // of layers with their own keys and values
	Activation   string // always "gelu_pytorch_tanh"
	Window       int    // positions that a sliding layer attends to, including its own
	Layer        []Gemma4Layer
	Rope         Rope // of full layers
	SlidingRope  Rope
	LogitCap     float64 // final_logit_softcapping; 0 = none
	// KEqV: full layers have no v_proj. Their values are the keys before norm and rope.
	KEqV bool
	// Per-layer embeddings: each layer adds a token vector of its own, through a gate of width PerLayerHidden. 0 = none.
	PerLayerHidden, PerLayerVocab int
	// Experts run in parallel with the dense MLP of every layer; Count 0 = none. The router's probabilities are a softmax
	// over the selected experts.
	Experts Experts
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
	register(Arch{
		ModelType: "gemma4",
		Aliases:   []string{"gemma4_text", "gemma4_unified", "gemma4_unified_text"},
		Architectures: []string{
			"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM",
			"Gemma4UnifiedForConditionalGeneration", "Gemma4UnifiedForCausalLM",
		},
		PerLayer: true,
		Parse:    func(config []byte) (Model, error) { return ParseGemma4(config) },
		GGUF:     []GGUF{ggufGemma4},
		Chat:     &Chat{Marks: []string{"gemma4"}, Parser: "gemma4", Renderer: "gemma4", Thinks: true},
		TextOnly: true,
		Docs: Docs{
			Variants: "E2B and E4B (per-layer embeddings, shared keys and values), 12B, 31B (keys serve as values), " +
				"26B-A4B (experts)",
			Rules: "generic, with own rules for embeddings, values and down projections",
			Draft: "`gemma4_assistant`",
		},
	})
}

// ParseGemma4 parses the config.json of a gemma4 model.
func ParseGemma4(config []byte) (*Gemma4, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := parseGemma4(top, o, "Gemma4ForConditionalGeneration", false)
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseGemma4 parses a text model. An assistant's has no keys and values at all.
func parseGemma4(top, o object, class string, assistant bool) *Gemma4 {
	unified := isUnified(top) || isUnified(o)
	d := commonDefaults{
		class: class, vocab: 262144, hidden: 2304, layers: 30, heads: 8, kv: 4, dim: 256, ctx: 131072, eps: 1e-6,
		tied: true, bos: []int32{2}, eos: []int32{1},
	}
	window, perLayer := 512, 256
	if unified {
		d.ctx, window, perLayer = 262144, 1024, 0
	}
	if assistant {
		perLayer = 0
	}
	m := &Gemma4{
		Common:         parseCommon(top, o, d),
		Unified:        unified,
		Intermediate:   o.size("intermediate_size", 9216, maxWidth/2),
		Activation:     o.activation("hidden_activation", gelu...),
		Window:         o.integer("sliding_window", window, 1, maxContext),
		LogitCap:       o.above("final_logit_softcapping", 0, 0),
		KEqV:           o.boolean("attention_k_eq_v", false),
		PerLayerHidden: o.integer("hidden_size_per_layer_input", perLayer, 0, maxHeadDim),
	}
	if m.PerLayerHidden > 0 {
		m.PerLayerVocab = o.integer("vocab_size_per_layer_input", 262144, 1, maxVocab)
	}
	if o.str("use_bidirectional_attention", "") == "all" {
		o.fail("use_bidirectional_attention", "not be all: encoders are not supported")
	}
	if o.boolean("enable_moe_block", false) {
		m.Experts = Experts{
			Count:        o.required("num_experts", 1, maxExperts),
			PerToken:     o.required("top_k_experts", 1, maxExperts),
			Intermediate: o.required("moe_intermediate_size", 1, maxWidth),
			NormTopK:     true,
		}
		o.checkExperts("num_experts", m.Experts, m.Hidden)
	}
	m.parseLayers(o, assistant)
	m.Rope = parseLayerRope(o, fullAttention, object{}, m.Context, ropeOptions{
		types: gemma4Ropes, theta: 1e6, headDim: m.full().HeadDim, kind: RopeProportional, partial: 0.25, inherit: true,
	})
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context,
		ropeOptions{types: gemma4Ropes, theta: 1e4, headDim: m.HeadDim, inherit: true})
	return m
}

var gemma4Ropes = append([]RopeType{RopeProportional}, decoderRopes...)

func isUnified(o object) bool {
	switch o.str("model_type", "") {
	case "gemma4_unified", "gemma4_unified_text", "gemma4_unified_assistant":
		return true
	}
	return false
}

// full returns the last layer, which is always a full one.
func (m *Gemma4) full() Gemma4Layer { return m.Layer[len(m.Layer)-1] }

// parseLayers reads the layer types, their head sizes and counts in both key styles, and which layers share keys.
func (m *Gemma4) parseLayers(o object, assistant bool) {
	sliding := parsePattern(o, m.Layers, 6)
	sliding[m.Layers-1] = false // as in transformers, whatever layer_types says
	shared := o.integer("num_kv_shared_layers", 0, 0, m.Layers)
	if assistant {
		if shared == 0 {
			shared = m.Layers
		}
		if shared != m.Layers {
			o.fail("num_kv_shared_layers",
				fmt.Sprintf("be num_hidden_layers = %d: an assistant has no keys of its own", m.Layers))
		}
	}
	wide := o.boolean("use_double_wide_mlp", false)
	m.Layer = make([]Gemma4Layer, m.Layers)
	for i := range m.Layer {
		l := Gemma4Layer{Sliding: sliding[i], HeadDim: m.HeadDim, KVHeads: m.KVHeads, Intermediate: m.Intermediate}
		if wide && i >= m.Layers-shared {
			l.Intermediate *= 2
		}
		m.Layer[i] = l
	}
	m.share(o, shared, assistant)
	if o.has("per_layer_config") {
		m.perLayerConfig(o)
	} else {
		m.globalKeys(o)
	}
	for i, l := range m.Layer {
		if m.Heads%l.KVHeads != 0 && o.failed() == nil {
			*o.err = configErrorf("num_key_value_heads = %d in layer %d: must divide num_attention_heads = %d",
				l.KVHeads, i, m.Heads)
		}
	}
}

// share lets the last layers attend to the keys and values of the last layer of their type before them. An assistant
// has no such layer.
func (m *Gemma4) share(o object, shared int, assistant bool) {
	last := map[bool]int{true: -1, false: -1} // last layer with its own keys, by sliding
	for i := range m.Layer {
		l := &m.Layer[i]
		if l.KV = i; i < m.Layers-shared {
			last[l.Sliding] = i
		} else if l.KV = last[l.Sliding]; l.KV < 0 && !assistant {
			o.fail("num_kv_shared_layers", fmt.Sprintf("leave a layer of the type of layer %d that has keys", i))
		}
	}
}

// globalKeys reads the published keys of full layers: they have wider heads, and fewer key heads if keys serve as
// values.
func (m *Gemma4) globalKeys(o object) {
	dim := o.integer("global_head_dim", 512, 1, maxHeadDim)
	if dim%2 != 0 {
		o.fail("global_head_dim", "be even")
	}
	kv := o.integer("num_global_key_value_heads", m.KVHeads, 1, maxHeads)
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
func (m *Gemma4) perLayerConfig(o object) {
	all, _ := o.object("per_layer_config")
	for _, key := range sortedKeys(all.raw) {
		in, _ := all.object(key)
		i, ok := asInteger([]byte(trimZeros(key)))
		if !ok || i < 0 || i >= int64(m.Layers) {
			all.fail(key, fmt.Sprintf("be for a layer from 0 to %d", m.Layers-1))
			return
		}
		for _, k := range sortedKeys(in.raw) {
			if k != "head_dim" && k != "num_key_value_heads" {
				in.fail(k, "not differ between layers")
			}
		}
		l := &m.Layer[i]
		l.HeadDim = in.integer("head_dim", l.HeadDim, 1, maxHeadDim)
		if l.HeadDim%2 != 0 {
			in.fail("head_dim", "be even")
		}
		l.KVHeads = in.integer("num_key_value_heads", l.KVHeads, 1, maxHeads)
	}
	first := map[bool]Gemma4Layer{}
	for i, l := range m.Layer {
		f, ok := first[l.Sliding]
		if !ok {
			first[l.Sliding] = l
		} else if f.HeadDim != l.HeadDim || f.KVHeads != l.KVHeads {
			o.fail("per_layer_config", fmt.Sprintf("leave layers of one type alike (layer %d differs)", i))
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
