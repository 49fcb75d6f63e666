package arch

import "fmt"

// Qwen35 is the configuration of model type "qwen3_5". Three of four layers are gated delta nets with a state of fixed
// size. The others are full attention: q_proj also produces a gate for the output, and heads are partially rotated by
// three positions (time, height and width in an image). Norm weights are used as 1 + w in float32. Absent keys have the
// defaults of transformers 5.23; sizes only inside text_config.
type Qwen35 struct {
	Common
	Intermediate int
	Activation   string // always "silu"
	Rope         Rope   // its PartialFactor is the rotated fraction of a head
	// Sections are the numbers of rotated pairs for time, height and width. If they are interleaved, pair j is for height
	// where j mod 3 = 1 and j < 3*Sections[1], for width where j mod 3 = 2 and j < 3*Sections[2], else for time.
	Sections    [3]int
	Interleaved bool
	Full        []bool // by layer: full attention, else gated delta
	Delta       GatedDelta
	// MTP is the number of layers of the multi-token prediction head. Its tensors (mtp.*) may be absent.
	MTP    int
	Vision *QwenVision // nil = none
	// Token ids of images in a prompt, 0 if the configuration has none.
	ImageToken, VideoToken, VisionStart, VisionEnd int
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

// state returns the size of a layer's state. A float32 counts as two 16-bit elements.
func (d GatedDelta) state() LayerState {
	matrices := int64(d.ValueHeads) * int64(d.ValueDim) * int64(d.KeyDim)
	return LayerState{Fixed: 2*matrices + int64(d.Kernel-1)*int64(2*d.Keys()+d.Values())}
}

// check reports heads of values that the heads of keys cannot share evenly.
func (d GatedDelta) check(o object) {
	if d.ValueHeads%d.KeyHeads != 0 {
		o.fail("linear_num_value_heads", fmt.Sprintf("be a multiple of linear_num_key_heads = %d", d.KeyHeads))
	}
}

func init() {
	register(Arch{
		ModelType:     "qwen3_5",
		Aliases:       []string{"qwen3_5_text"},
		Architectures: []string{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen35(config) },
		GGUF:          []GGUF{ggufQwen35},
		Chat:          &qwen35Chat,
		Docs: Docs{
			Variants: "gated delta nets alternating with full attention; four or two input projections",
			Rules:    qwen35RulesDoc,
			Draft:    qwen35DraftDoc,
			Vision:   "yes",
		},
	})
}

var qwen35Chat = Chat{
	Marks:  []string{"qwen3_5", "qwen3next", "qwen3_next", "qwen4exp", "qwen4_exp"},
	Parser: "qwen3.5", Renderer: "qwen3.5", Thinks: true,
}

const (
	qwen35RulesDoc = "generic; the projections of decay and step size of a delta net keep their type"
	qwen35DraftDoc = "its own multi-token prediction head (`mtp.*`)"
)

// maxTaps is the largest convolution kernel that the engine runs.
const maxTaps = 8

// ParseQwen35 parses the config.json of a qwen3_5 model.
func ParseQwen35(config []byte) (*Qwen35, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := parseQwen35(top, o, commonDefaults{
		class: "Qwen3_5ForConditionalGeneration", vocab: 248320, hidden: 4096, layers: 32, heads: 16, kv: 4, dim: 256,
		ctx: 32768, eps: 1e-6,
	})
	m.Intermediate = o.size("intermediate_size", 12288, maxWidth)
	if err := o.failed(); err != nil {
		return nil, err
	}
	return &m, nil
}

// parseQwen35 reads the keys that dense and mixture-of-experts models share.
func parseQwen35(top, o object, d commonDefaults) Qwen35 {
	m := Qwen35{
		Common:     parseCommon(top, o, d),
		Activation: o.activation("hidden_act", silu...),
		Delta: GatedDelta{
			KeyHeads:   o.integer("linear_num_key_heads", 16, 1, maxHeads),
			ValueHeads: o.integer("linear_num_value_heads", 32, 1, maxHeads),
			KeyDim:     o.integer("linear_key_head_dim", 128, 1, maxHeadDim),
			ValueDim:   o.integer("linear_value_head_dim", 128, 1, maxHeadDim),
			Kernel:     o.integer("linear_conv_kernel_dim", 4, 2, maxTaps),
		},
		MTP: o.integer("mtp_num_hidden_layers", o.integer("num_nextn_predict_layers", 1, 0, 16), 0, 16),
	}
	m.Delta.check(o)
	if !o.boolean("attn_output_gate", true) {
		o.fail("attn_output_gate", "be true")
	}
	if o.boolean("mtp_use_dedicated_embeddings", false) {
		o.fail("mtp_use_dedicated_embeddings", "be false")
	}
	interval := o.integer("full_attention_interval", 4, 1, maxLayers)
	kinds := o.kinds("layer_types", m.Layers, linearAttention, fullAttention)
	m.Full = make([]bool, m.Layers)
	for i := range m.Full {
		m.Full[i] = (i+1)%interval == 0
		if kinds != nil {
			m.Full[i] = kinds[i] == fullAttention
		}
	}
	m.parseRope(o)
	m.Vision = parseQwenVision(top, m.Hidden)
	for _, t := range []struct {
		key string
		def int
		to  *int
	}{
		{"image_token_id", 248056, &m.ImageToken}, {"video_token_id", 248057, &m.VideoToken},
		{"vision_start_token_id", 248053, &m.VisionStart}, {"vision_end_token_id", 248054, &m.VisionEnd},
	} {
		*t.to = top.integer(t.key, t.def, 0, maxVocab)
	}
	return m
}

// parseRope reads the rope keys of any decoder, with a default partial factor of 1/4, and the sections.
func (m *Qwen35) parseRope(o object) {
	m.Rope = parseRope(o, m.Context, ropeOptions{partial: 0.25, zeroPartial: true, headDim: m.HeadDim})
	rotated := int(float64(m.HeadDim) * m.Rope.PartialFactor)
	if rotated < 2 && o.failed() == nil {
		*o.err = configErrorf("partial_rotary_factor = %v: must leave a pair of %d channels to rotate",
			m.Rope.PartialFactor, m.HeadDim)
	}
	m.Sections, m.Interleaved = [3]int{11, 11, 10}, true
	in, ok := o.object("rope_scaling")
	if !ok {
		in, _ = o.object("rope_parameters")
	}
	for _, place := range []struct {
		at  object
		key string
	}{{o, "mrope_sections"}, {in, "mrope_section"}, {in, "dimension_sections"}} {
		if !place.at.has(place.key) {
			continue
		}
		list := place.at.integers(place.key, 4, 0, maxHeadDim)
		if len(list) < 3 {
			place.at.fail(place.key, "have three numbers: of time, height and width")
		}
		m.Sections = [3]int{}
		copy(m.Sections[:], list)
		break
	}
	m.Interleaved = o.boolean("mrope_interleaved", in.optional("mrope_interleaved", true))
	pairs := (rotated + 1) / 2
	if sum := m.Sections[0] + m.Sections[1] + m.Sections[2]; !m.Interleaved && sum != pairs {
		o.fail("mrope_interleaved", fmt.Sprintf("be true where the sections have %d pairs of a head's %d", sum, pairs))
	}
}

// optional is boolean for an object that may be absent.
func (o object) optional(key string, def bool) bool {
	if o.err == nil {
		return def
	}
	return o.boolean(key, def)
}
