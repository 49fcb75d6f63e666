package arch

import "github.com/ingotml/ingot/arch/decoder"

// Qwen3 is the configuration of model type "qwen3": a pre-norm decoder with grouped-query attention, RMS norms of each
// query and key head before rope, and a gated MLP. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Qwen3 struct {
	Common
	Intermediate int
	Activation   string // always "silu"
	Rope         Rope
	// Window is the number of positions that a sliding layer attends to, including its own; 0 = no layer is sliding.
	Window  int
	Sliding []bool // by layer
}

func init() {
	register(Arch{
		ModelType:     "qwen3",
		Plain:         true,
		Aliases:       []string{"qwen3_vl", "qwen3_vl_text"},
		Towers:        []string{"qwen3_vl"},
		Architectures: []string{"Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen3(config) },
		GGUF:          []GGUF{ggufQwen3},
		Chat:          &qwen3Chat,
		Docs: Docs{
			Variants: "biases, tied embeddings, sliding windows by `max_window_layers` or `layer_types`; text of Qwen3-VL",
		},
	})
}

var qwen3Chat = Chat{Marks: []string{"qwen3"}, Parser: "qwen3", Renderer: "qwen3-coder", Thinks: true}

// Layer types in layer_types.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
	linearAttention  = "linear_attention"
)

// ParseQwen3 parses the config.json of a qwen3 model.
func ParseQwen3(config []byte) (*Qwen3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Qwen3{
		Common:       parseCommon(top, o, commonDefaults{class: "Qwen3ForCausalLM", dim: 128, ctx: 32768, eps: 1e-6}),
		Intermediate: o.size("intermediate_size", 0, maxWidth),
		Activation:   o.activation("hidden_act", silu...),
	}
	m.Rope = parseRope(o, m.Context, ropeOptions{headDim: m.HeadDim})
	m.Rope.ignorePartial(o)
	m.Window, m.Sliding = parseWindow(o, m.Layers, o.integer("max_window_layers", 28, 0, maxLayers))
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseWindow reads the sliding window, and which layers have it: those in layer_types, or all from layer first on.
func parseWindow(o object, layers, first int) (window int, sliding []bool) {
	sliding = make([]bool, layers)
	kinds := o.kinds("layer_types", layers, fullAttention, slidingAttention)
	if !o.boolean("use_sliding_window", false) {
		return 0, sliding
	}
	if window = o.integer("sliding_window", 4096, 1, maxContext); !o.has("sliding_window") {
		if _, null := o.raw["sliding_window"]; null {
			return 0, sliding
		}
	}
	some := false
	for i := range sliding {
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
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

// State implements [Model].
func (m *Qwen3) State() []LayerState {
	return m.kvStates(m.Window, func(i int) bool { return m.Sliding[i] })
}

// Facts implements [Model].
func (m *Qwen3) Facts() Facts { return m.facts("qwen3", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Qwen3) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model]. Weights of linear layers are [out, in].
func (m *Qwen3) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("qwen3", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.attention(t, layer+"self_attn", m.queries(), false)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
	t.dropTowers("qwen3")
	return t
}

// Decoder implements [Described].
func (m *Qwen3) Decoder() Decoder {
	return Decoder{
		Dense:       &Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope},
		Description: decoder.Description{HeadNorms: decoder.QK},
	}
}
