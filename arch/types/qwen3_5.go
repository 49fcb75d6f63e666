package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen35 is the configuration of model type "qwen3_5". Three of four layers are gated delta nets with a state of fixed
// size. The others are full attention: q_proj also produces a gate for the output, and heads are partially rotated by
// three positions (time, height and width in an image). Norm weights are used as 1 + w in float32. Absent keys have the
// defaults of transformers 5.23; sizes only inside text_config.
type Qwen35 struct {
	config.Common
	Intermediate int
	Activation   string      // always "silu"
	Rope         config.Rope // its PartialFactor is the rotated fraction of a head
	// Sections are the numbers of rotated pairs for time, height and width. If they are interleaved, pair j is for height
	// where j mod 3 = 1 and j < 3*Sections[1], for width where j mod 3 = 2 and j < 3*Sections[2], else for time.
	Sections    [3]int
	Interleaved bool
	Full        []bool // by layer: full attention, else gated delta
	Delta       config.GatedDelta
	// MTP is the number of layers of the multi-token prediction head. Its tensors (mtp.*) may be absent.
	MTP    int
	Vision *QwenVision // nil = none
	// Token ids of images in a prompt, 0 if the configuration has none.
	ImageToken, VideoToken, VisionStart, VisionEnd int
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "qwen3_5",
		Aliases:       []string{"qwen3_5_text"},
		Architectures: []string{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
		GGUF:          []gguf.Map{ggufQwen35},
		Chat:          &arch.Chat{Marks: []string{"qwen3_5"}, Parser: "qwen3.5", Renderer: "qwen3.5", Thinks: true},
		Published:     table.Published{NestedMLX: true},
		Variants: map[string]table.Published{
			"qwen3_5_text": {},
		},
		Idle: []arch.Idle{
			{Why: "all layers have experts", Keys: []string{"mlp_only_layers"}},
		},
		Fixed: []arch.Fixed{
			{Key: "output_gate_type", Values: []string{`"silu"`, `"swish"`}},
		},
		Docs: arch.Docs{
			Variants: "gated delta nets alternating with full attention; four or two input projections",
			Rules:    qwen35RulesDoc,
			Draft:    qwen35DraftDoc,
			Vision:   "yes",
		},
	}, ParseQwen35)
}

const (
	qwen35RulesDoc = "generic; the projections of decay and step size of a delta net keep their type"
	qwen35DraftDoc = "its own multi-token prediction head (`mtp.*`)"
)

// ParseQwen35 parses the config.json of a qwen3_5 model.
func ParseQwen35(data []byte) (*Qwen35, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := parseQwen35(top, o, config.Defaults{
		Class: "Qwen3_5ForConditionalGeneration", Vocab: 248320, Hidden: 4096, Layers: 32, Heads: 16, KVHeads: 4,
		HeadDim: 256,
		Context: 32768, NormEps: 1e-6,
	})
	m.Intermediate = o.Size("intermediate_size", 12288, config.MaxWidth)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return &m, nil
}

// parseQwen35 reads the keys that dense and mixture-of-experts models share.
func parseQwen35(top, o config.Object, d config.Defaults) Qwen35 {
	m := Qwen35{
		Common:     config.ParseCommon(top, o, d),
		Activation: o.Activation("hidden_act", config.SiLU...),
		Delta: config.GatedDelta{
			KeyHeads:   o.Integer("linear_num_key_heads", 16, 1, config.MaxHeads),
			ValueHeads: o.Integer("linear_num_value_heads", 32, 1, config.MaxHeads),
			KeyDim:     o.Integer("linear_key_head_dim", 128, 1, config.MaxHeadDim),
			ValueDim:   o.Integer("linear_value_head_dim", 128, 1, config.MaxHeadDim),
			Kernel:     o.Integer("linear_conv_kernel_dim", 4, 2, config.MaxTaps),
		},
		MTP: o.Integer("mtp_num_hidden_layers", o.Integer("num_nextn_predict_layers", 1, 0, 16), 0, 16),
	}
	m.Delta.Check(o)
	if !o.Bool("attn_output_gate", true) {
		o.Fail("attn_output_gate", "be true")
	}
	if o.Bool("mtp_use_dedicated_embeddings", false) {
		o.Fail("mtp_use_dedicated_embeddings", "be false")
	}
	interval := o.Integer("full_attention_interval", 4, 1, config.MaxLayers)
	kinds := o.Words("layer_types", m.Layers, config.LinearAttention, config.FullAttention)
	m.Full = make([]bool, m.Layers)
	for i := range m.Full {
		m.Full[i] = (i+1)%interval == 0
		if kinds != nil {
			m.Full[i] = kinds[i] == config.FullAttention
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
		*t.to = top.Integer(t.key, t.def, 0, config.MaxVocab)
	}
	return m
}

// parseRope reads the rope keys of any decoder, with a default partial factor of 1/4, and the sections.
func (m *Qwen35) parseRope(o config.Object) {
	m.Rope = config.ParseRope(o, m.Context, config.RopeOptions{Partial: 0.25, ZeroPartial: true, HeadDim: m.HeadDim})
	rotated := int(float64(m.HeadDim) * m.Rope.PartialFactor)
	if rotated < 2 && o.Failed() == nil {
		*o.Err = config.Errorf("partial_rotary_factor = %v: must leave a pair of %d channels to rotate",
			m.Rope.PartialFactor, m.HeadDim)
	}
	m.Sections, m.Interleaved = [3]int{11, 11, 10}, true
	in, ok := o.Object("rope_scaling")
	if !ok {
		in, _ = o.Object("rope_parameters")
	}
	for _, place := range []struct {
		at  config.Object
		key string
	}{{o, "mrope_sections"}, {in, "mrope_section"}, {in, "dimension_sections"}} {
		if !place.at.Has(place.key) {
			continue
		}
		list := place.at.Integers(place.key, 4, 0, config.MaxHeadDim)
		if len(list) < 3 {
			place.at.Fail(place.key, "have three numbers: of time, height and width")
		}
		m.Sections = [3]int{}
		copy(m.Sections[:], list)
		break
	}
	m.Interleaved = o.Bool("mrope_interleaved", boolOr(in, "mrope_interleaved", true))
	pairs := (rotated + 1) / 2
	if sum := m.Sections[0] + m.Sections[1] + m.Sections[2]; !m.Interleaved && sum != pairs {
		o.Fail("mrope_interleaved", fmt.Sprintf("be true where the sections have %d pairs of a head's %d", sum, pairs))
	}
}

// boolOr is boolean for an object that may be absent.
func boolOr(o config.Object, key string, def bool) bool {
	if o.Err == nil {
		return def
	}
	return o.Bool(key, def)
}
