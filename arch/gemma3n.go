package arch

import (
	"fmt"
	"math"
)

// Gemma3n is the configuration of the text model of model type "gemma3n", alone (gemma3n_text) or in a multimodal
// checkpoint. The towers are not imported. Attention, shared keys and values, and per-layer embeddings are those of
// [Gemma4]. The residual stream has several versions (AltUp): before each layer all of them are predicted from all, the
// layer computes one, and its result corrects the others. A product of low rank runs beside attention (Laurel), and the
// first layers use the largest gates only. Absent keys have the defaults of transformers 5.23; sizes only inside
// text_config.
type Gemma3n struct {
	Gemma4
	Streams      int  // altup_num_inputs: versions of the residual stream
	Active       int  // altup_active_idx: the version that layers compute
	CorrectScale bool // altup_correct_scale: the per-layer embeddings' gates see scaled versions
	LaurelRank   int
	Sparsity     []float64 // by layer: the share of gates that become 0 if gates are normally distributed; 0 = none do
}

const (
	maxStreams    = 64
	maxLaurelRank = 1 << 14
)

func init() {
	register(Arch{
		ModelType:     "gemma3n",
		Aliases:       []string{"gemma3n_text"},
		Architectures: []string{"Gemma3nForConditionalGeneration", "Gemma3nForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGemma3n(config) },
		GGUF:          []GGUF{ggufGemma3n},
		TextOnly:      true,
		Docs: Docs{
			Variants: "E2B and E4B: several residual streams, sparse gates, per-layer embeddings, shared keys and values; " +
				"text of multimodal checkpoints",
			Rules: "those of `gemma4`; what mixes the streams stays as it is",
		},
	})
}

// ParseGemma3n parses the config.json of a gemma3n model.
func ParseGemma3n(config []byte) (*Gemma3n, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Gemma3n{
		Gemma4: Gemma4{
			Common: parseCommon(top, o, commonDefaults{
				class: "Gemma3nForConditionalGeneration", vocab: 262400, hidden: 2048, layers: 35, heads: 8, kv: 2, dim: 256,
				ctx: 32768, eps: 1e-6, tied: true, bos: []int32{2}, eos: []int32{1},
			}),
			Activation:     o.activation("hidden_activation", gelu...),
			Window:         o.integer("sliding_window", 512, 1, maxContext),
			LogitCap:       o.limit("final_logit_softcapping", 30),
			PerLayerHidden: o.integer("hidden_size_per_layer_input", 256, 1, maxHeadDim),
			PerLayerVocab:  o.integer("vocab_size_per_layer_input", 262144, 1, maxVocab),
		},
		Streams:      o.integer("altup_num_inputs", 4, 2, maxStreams),
		CorrectScale: o.boolean("altup_correct_scale", true),
		LaurelRank:   o.integer("laurel_rank", 64, 1, maxLaurelRank),
	}
	m.Active = o.integer("altup_active_idx", 0, 0, m.Streams-1)
	m.parseLayers(o)
	opts := ropeOptions{headDim: m.HeadDim, theta: o.theta("rope_theta", 1e6)}
	scaling, _ := o.object("rope_scaling")
	m.Rope = parseLayerRope(o, fullAttention, scaling, m.Context, opts)
	opts.theta = o.theta("rope_local_base_freq", 1e4)
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, opts)
	return parsed(m, o)
}

// parseLayers reads the layers' types, widths and sparsities, and which of them share keys.
func (m *Gemma3n) parseLayers(o object) {
	m.Layer = make([]Gemma4Layer, m.Layers)
	for i, sliding := range parsePattern(o, m.Layers, 5) {
		m.Layer[i] = Gemma4Layer{Sliding: sliding, HeadDim: m.HeadDim, KVHeads: m.KVHeads}
	}
	if raw := o.raw["intermediate_size"]; len(raw) > 0 && raw[0] == '[' {
		widths := o.integers("intermediate_size", maxLayers, 1, maxWidth)
		m.perLayer(o, "intermediate_size", len(widths))
		for i := range min(len(widths), m.Layers) {
			m.Layer[i].Intermediate = widths[i]
			m.Intermediate = max(m.Intermediate, widths[i])
		}
	} else {
		m.Intermediate = o.size("intermediate_size", 16384, maxWidth)
		for i := range m.Layer {
			m.Layer[i].Intermediate = m.Intermediate
		}
	}
	m.Sparsity = make([]float64, m.Layers)
	if o.has("activation_sparsity_pattern") {
		shares := o.list("activation_sparsity_pattern", maxLayers)
		m.perLayer(o, "activation_sparsity_pattern", len(shares))
		for i := range min(len(shares), m.Layers) {
			share, ok := asNumber(shares[i])
			if !ok || share < 0 || share >= 1 {
				o.fail("activation_sparsity_pattern", "be numbers from 0 to less than 1")
				break
			}
			m.Sparsity[i] = share
		}
	} else if m.Layers > 10 {
		for i := range 10 {
			m.Sparsity[i] = 0.95
		}
	}
	m.share(o, o.integer("num_kv_shared_layers", 15, 0, m.Layers), false)
}

// perLayer checks the length of a list of the layers' properties.
func (m *Gemma3n) perLayer(o object, key string, n int) {
	if n != m.Layers {
		o.fail(key, fmt.Sprintf("have num_hidden_layers = %d elements", m.Layers))
	}
}

// Deviations returns by how many standard deviations a gate of layer i must exceed the mean of its row's gates; the
// others become 0. ok is false if all gates are used.
func (m *Gemma3n) Deviations(i int) (n float64, ok bool) {
	return math.Sqrt2 * math.Erfinv(2*m.Sparsity[i]-1), m.Sparsity[i] > 0
}

// Facts implements [Model].
func (m *Gemma3n) Facts() Facts { return m.facts("gemma3n", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Gemma3n) Rules() Rules {
	streams := Rule{Name: "mixes the streams", Of: Quantized, Has: []string{".altup."}, To: []Target{Source}}
	return genericRules(m.Layers, append([]Rule{streams}, gemma4Rules...)...)
}

// Table implements [Model].
func (m *Gemma3n) Table() Table {
	hidden, perLayer := int64(m.Hidden), int64(m.PerLayerHidden)
	packed := int64(m.Layers) * perLayer
	t := Table{ModelType: "gemma3n", Parts: []Part{m.textPart()}}
	t.add(m.Prefix+"embed_tokens.weight", byToken, int64(m.Vocab), hidden)
	t.add(m.Prefix+"embed_tokens_per_layer.weight", byToken, int64(m.PerLayerVocab), packed)
	t.linear(m.Prefix+"per_layer_model_projection", packed, hidden, false, replicated)
	t.norm(m.Prefix+"per_layer_projection_norm", perLayer, false)
	for _, name := range []string{"altup_projections", "altup_unembed_projections"} {
		m.betweenStreams(&t, m.Prefix+name)
	}
	for i, l := range m.Layer {
		layer := m.layer(i)
		m.altup(&t, layer+"altup")
		t.norm(layer+"input_layernorm", hidden, false)
		t.linear(layer+"laurel.linear_left", int64(m.LaurelRank), hidden, false, replicated)
		t.linear(layer+"laurel.linear_right", hidden, int64(m.LaurelRank), false, replicated)
		t.norm(layer+"laurel.post_laurel_norm", hidden, false)
		m.attend(&t, layer+"self_attn", i, l)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		t.norm(layer+"pre_feedforward_layernorm", hidden, false)
		m.mlp(&t, layer+"mlp", l.Intermediate)
		t.norm(layer+"post_feedforward_layernorm", hidden, false)
		t.linear(layer+"per_layer_input_gate", perLayer, hidden, false, replicated)
		t.linear(layer+"per_layer_projection", hidden, perLayer, false, replicated)
		t.norm(layer+"post_per_layer_input_norm", hidden, false)
	}
	m.end(&t, false)
	t.dropTowers("gemma3n")
	return t
}

// betweenStreams adds the projections between the first residual stream and the others. GGUF files stack them.
func (m *Gemma3n) betweenStreams(t *Table, name string) {
	hidden, n := int64(m.Hidden), int64(m.Streams-1)
	for i := range n {
		s := t.add(fmt.Sprintf("%s.%d.weight", name, i), replicated, hidden, hidden)
		s.Layout, s.Group = split, name
		s.Forms = []Form{{
			Layout: stacked, Make: Gather, Count: 1, Names: []string{name + ".weight"}, Shapes: [][]int64{{n, hidden, hidden}},
			Runs: []Run{{Begin: i * hidden * hidden, Count: hidden * hidden, Step: hidden * hidden, Times: 1}},
		}}
	}
}

// altup adds what predicts and corrects the versions of the residual stream.
func (m *Gemma3n) altup(t *Table, name string) {
	hidden, n := int64(m.Hidden), int64(m.Streams)
	t.norm(name+".router_norm", hidden, false)
	t.linear(name+".modality_router", n, hidden, false, replicated)
	t.linear(name+".prediction_coefs", n*n, n, false, replicated)
	t.linear(name+".correction_coefs", n, n, false, replicated)
	if m.CorrectScale {
		t.add(name+".correct_output_scale", replicated, hidden)
	} else {
		t.drop("not used (altup_correct_scale)", name+".correct_output_scale")
	}
}
