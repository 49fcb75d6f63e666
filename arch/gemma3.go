package arch

import (
	"math"

	"github.com/ingotml/ingot/arch/decoder"
)

// Gemma3 is the configuration of the text model of model type "gemma3", alone (gemma3_text) or in a multimodal
// checkpoint. The vision tower is not imported. It has norms before and after attention and MLP, with weights used as 1
// + w in float32; query and key norms per head; sliding layers, with their own rope, alternating with full ones; and
// embeddings multiplied by sqrt(hidden). attn_logit_softcapping is ignored, as in transformers. Absent keys have the
// defaults of transformers 5.23; sizes only inside text_config.
type Gemma3 struct {
	Common
	Intermediate int
	Activation   string  // always "gelu_pytorch_tanh"
	QueryScalar  float64 // query_pre_attn_scalar: attention scores are divided by its square root
	Window       int     // positions that a sliding layer attends to, including its own
	Sliding      []bool  // by layer
	Rope         Rope    // of full layers
	SlidingRope  Rope
	LogitCap     float64 // final_logit_softcapping; 0 = none
}

func init() {
	register(Arch{
		ModelType: "gemma3",
		Plain:     true,
		Aliases:   []string{"gemma3_text"},
		// Most published checkpoints use the first.
		Architectures: []string{"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGemma3(config) },
		GGUF:          []GGUF{ggufGemma3},
		TextOnly:      true,
		Docs: Docs{
			Variants: "text only, text of multimodal checkpoints; sliding layers with their own rope, logit soft-capping",
		},
	})
}

// ParseGemma3 parses the config.json of a gemma3 model.
func ParseGemma3(config []byte) (*Gemma3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Gemma3{
		Common: parseCommon(top, o, commonDefaults{
			class: "Gemma3ForConditionalGeneration", vocab: 262208, hidden: 2304, layers: 26, heads: 8, kv: 4, dim: 256,
			ctx: 131072, eps: 1e-6, tied: true, bos: []int32{2}, eos: []int32{1},
		}),
		Intermediate: o.size("intermediate_size", 9216, maxWidth),
		Activation:   o.activation("hidden_activation", gelu...),
		QueryScalar:  o.above("query_pre_attn_scalar", 256, 0),
		Window:       o.integer("sliding_window", 4096, 1, maxContext),
		LogitCap:     o.above("final_logit_softcapping", 0, 0),
	}
	if o.boolean("use_bidirectional_attention", false) {
		o.fail("use_bidirectional_attention", "be false: encoders are not supported")
	}
	m.Sliding = parsePattern(o, m.Layers, 6)
	opts := ropeOptions{headDim: m.HeadDim, theta: o.theta("rope_theta", 1e6)}
	scaling, _ := o.object("rope_scaling")
	m.Rope = parseLayerRope(o, fullAttention, scaling, m.Context, opts)
	opts.theta = o.theta("rope_local_base_freq", 1e4)
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, opts)
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// parsePattern returns which layers are sliding: those in layer_types, or all except every n-th, where n is
// sliding_window_pattern.
func parsePattern(o object, layers, def int) []bool {
	sliding := make([]bool, layers)
	kinds := o.kinds("layer_types", layers, fullAttention, slidingAttention)
	pattern := o.integer("sliding_window_pattern", def, 1, maxLayers)
	for i := range sliding {
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		} else {
			sliding[i] = (i+1)%pattern != 0
		}
	}
	return sliding
}

// State implements [Model].
func (m *Gemma3) State() []LayerState {
	return m.kvStates(m.Window, func(i int) bool { return m.Sliding[i] })
}

// Facts implements [Model].
func (m *Gemma3) Facts() Facts { return m.facts("gemma3", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Gemma3) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model].
func (m *Gemma3) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("gemma3", true, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, true)
		m.attention(t, layer+"self_attn", m.queries(), true)
		t.norm(layer+"post_attention_layernorm", hidden, true)
		t.norm(layer+"pre_feedforward_layernorm", hidden, true)
		m.mlp(t, layer+"mlp", m.Intermediate)
		t.norm(layer+"post_feedforward_layernorm", hidden, true)
	})
	t.dropTowers("gemma3")
	return t
}

// dropTowers drops the vision and audio towers of models whose towers are not supported.
func (t *Table) dropTowers(modelType string) {
	for _, name := range []string{
		"vision_tower", "vision_model", "multi_modal_projector", "embed_vision", "vision_embedder", "visual", "mm_projector",
	} {
		t.leaveOut(name, "pictures are not supported for "+modelType+", its text model is imported",
			"model."+name+".*", name+".*")
	}
	for _, name := range []string{"audio_tower", "embed_audio"} {
		t.leaveOut(name, "sound is not supported, the text model is imported", "model."+name+".*", name+".*")
	}
}

// Decoder implements [Described].
func (m *Gemma3) Decoder() Decoder {
	return Decoder{
		Dense:       &Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope},
		SlidingRope: &m.SlidingRope,
		Description: decoder.Description{
			Norm:           decoder.Norm{Offset: true},
			Norms:          decoder.Around,
			HeadNorms:      decoder.QK,
			AttentionScale: 1 / math.Sqrt(m.QueryScalar),
			EmbeddingScale: math.Sqrt(float64(m.Hidden)),
			LogitCap:       m.LogitCap,
		},
	}
}
