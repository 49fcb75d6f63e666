package arch

import "slices"

// Bounds of a configuration's values. They are several times the published ones, and small enough that the size of a
// model in bits fits an int64.
const (
	maxVocab   = 1 << 26
	maxWidth   = 1 << 20 // hidden and intermediate sizes
	maxLayers  = 1 << 12
	maxHeads   = 1 << 12
	maxHeadDim = 1 << 12
	maxContext = 1 << 30
)

// Llama is the configuration of model type "llama": a pre-norm decoder with grouped-query attention and a gated MLP. It
// also covers "mistral", which adds a sliding window to all layers. Absent keys have the defaults of transformers 5.23;
// sizes are required.
type Llama struct {
	Common
	Intermediate int
	Activation   string // always "silu"
	Rope         Rope
	Window       int // positions that a layer attends to, including its own; 0 = all. Only mistral sets it
}

func init() {
	register(Arch{
		ModelType: "llama",
		Plain:     true,
		Aliases:   []string{mistral, internLM, internLM3, "xverse"},
		// The first published conversions have the second spelling.
		Architectures: []string{
			"LlamaForCausalLM", "LLaMAForCausalLM", mistralClass, "InternLMForCausalLM", "InternLM3ForCausalLM",
			"XverseForCausalLM",
		},
		Parse: func(config []byte) (Model, error) { return ParseLlama(config) },
		GGUF:  []GGUF{ggufLlama},
		Docs: Docs{
			Variants: "biases, tied embeddings, explicit head size, sliding window in all layers (Mistral); " +
				"XVERSE, InternLM 1 and 3",
			Reference: ", float64",
		},
	})
}

const (
	mistral      = "mistral"
	mistralClass = "MistralForCausalLM"
)

// ParseLlama parses the config.json of a llama or mistral model.
func ParseLlama(config []byte) (*Llama, error) {
	o, err := parseObject(config)
	if err != nil {
		return nil, err
	}
	modelType := o.str("model_type", "")
	isMistral := modelType == mistral || modelType == "" && slices.Contains(o.strs("architectures"), mistralClass)
	d := commonDefaults{class: "LlamaForCausalLM", ctx: 2048, eps: 1e-6, bos: []int32{1}, eos: []int32{2}}
	if isMistral {
		d.class, d.ctx = mistralClass, 1<<17
		d.kv = 8
	}
	m := &Llama{
		Common:       parseCommon(o, o, d),
		Intermediate: o.required("intermediate_size", 1, maxWidth),
		Activation:   o.activation("hidden_act", silu...),
	}
	m.MLPBias = o.boolean("mlp_bias", false)
	switch {
	case isMistral:
		m.mistral(o)
	case modelType == internLM || modelType == internLM3:
		m.internLM(o, modelType)
	}
	m.Rope = parseRope(o, m.Context, ropeOptions{headDim: m.HeadDim})
	m.Rope.ignorePartial(o) // as transformers' default type does
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// mistral reads the keys specific to mistral: a window, which null disables, and no biases, whatever the file says.
func (m *Llama) mistral(o object) {
	m.AttentionBias, m.OutputBias, m.MLPBias = false, false, false
	if _, given := o.raw["sliding_window"]; !given {
		m.Window = 4096
	}
	m.Window = o.integer("sliding_window", m.Window, 1, maxContext)
}

const dropInvFreq = "a buffer of old checkpoints: computed from the configuration"

// State implements [Model].
func (m *Llama) State() []LayerState { return m.kvStates(m.Window, func(int) bool { return true }) }

// Facts implements [Model].
func (m *Llama) Facts() Facts { return m.facts("llama", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Llama) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model]. Weights of linear layers are [out, in].
func (m *Llama) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("llama", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.projections(t, layer+"self_attn", m.queries())
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
	})
}

// Decoder implements [Described].
func (m *Llama) Decoder() Decoder {
	return Decoder{
		Dense: &Dense{Common: m.Common, Intermediate: m.Intermediate, Activation: m.Activation, Rope: m.Rope},
	}
}
