package arch

import (
	"fmt"
	"slices"
	"strconv"
)

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
	Architecture  string
	DType         string // torch_dtype or dtype, e.g. "bfloat16"; "" if absent
	Vocab         int
	Hidden        int
	Intermediate  int
	Layers        int
	Heads         int // query heads
	KVHeads       int // key and value heads; divides Heads
	HeadDim       int // even
	Context       int // max_position_embeddings
	NormEps       float64
	Activation    string // always "silu"
	Rope          Rope
	Window        int  // positions that a layer attends to, including its own; 0 = all. Only mistral sets it
	AttentionBias bool // biases on q, k, v and o
	MLPBias       bool // biases on gate, up and down
	TieEmbeddings bool // tied embeddings: the output head is the embedding
	BOS           []int32
	EOS           []int32
}

func init() {
	register(Arch{
		ModelType: "llama",
		Aliases:   []string{mistral},
		// The first published conversions have the second spelling.
		Architectures: []string{"LlamaForCausalLM", "LLaMAForCausalLM", mistralClass},
		Parse:         func(config []byte) (Model, error) { return ParseLlama(config) },
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
	m := &Llama{
		Architecture:  "LlamaForCausalLM",
		DType:         o.str("dtype", o.str("torch_dtype", "")),
		Vocab:         o.required("vocab_size", 1, maxVocab),
		Hidden:        o.required("hidden_size", 1, maxWidth),
		Intermediate:  o.required("intermediate_size", 1, maxWidth),
		Layers:        o.required("num_hidden_layers", 1, maxLayers),
		Heads:         o.required("num_attention_heads", 1, maxHeads),
		Context:       o.integer("max_position_embeddings", 2048, 1, maxContext),
		NormEps:       o.above("rms_norm_eps", 1e-6, 0),
		Activation:    o.activation("hidden_act", silu...),
		AttentionBias: o.boolean("attention_bias", false),
		MLPBias:       o.boolean("mlp_bias", false),
		TieEmbeddings: o.boolean("tie_word_embeddings", false),
		BOS:           o.tokens("bos_token_id", []int32{1}),
		EOS:           o.tokens("eos_token_id", []int32{2}),
	}
	m.KVHeads = o.integer("num_key_value_heads", m.Heads, 1, maxHeads)
	modelType := o.str("model_type", "")
	if modelType == mistral || modelType == "" && slices.Contains(o.strs("architectures"), mistralClass) {
		m.mistral(o)
	}
	if m.Heads%m.KVHeads != 0 {
		o.fail("num_key_value_heads", fmt.Sprintf("divide num_attention_heads = %d", m.Heads))
	}
	m.HeadDim = parseHeadDim(o, m.Hidden, m.Heads, 0)
	m.Rope = parseRope(o, m.Context, ropeOptions{headDim: m.HeadDim})
	m.Rope.ignorePartial(o) // as transformers' default type does
	if classes := o.strs("architectures"); len(classes) > 0 {
		m.Architecture = classes[0]
	}
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// mistral reads the keys specific to mistral: a window, other defaults, and no biases, whatever the file says. Here
// null differs from absent: it means no window, and as many key heads as query heads.
func (m *Llama) mistral(o object) {
	m.Architecture, m.AttentionBias, m.MLPBias = mistralClass, false, false
	m.Context = o.integer("max_position_embeddings", 1<<17, 1, maxContext)
	if _, given := o.raw["num_key_value_heads"]; !given {
		m.KVHeads = 8
	}
	if _, given := o.raw["sliding_window"]; !given {
		m.Window = 4096
	}
	m.Window = o.integer("sliding_window", m.Window, 1, maxContext)
}

const dropInvFreq = "a buffer of old checkpoints: computed from the configuration"

// Facts implements [Model].
func (m *Llama) Facts() Facts {
	return Facts{
		ModelType: "llama", Architecture: m.Architecture, DType: m.DType, Vocab: int64(m.Vocab), Hidden: int64(m.Hidden),
		Layers: int64(m.Layers), Context: m.Rope.maxSequence(m.Context), Params: m.Table().Params(),
	}
}

// Rules implements [Model].
func (m *Llama) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model]. Weights of linear layers are [out, in].
func (m *Llama) Table() Table {
	hidden, ff := int64(m.Hidden), int64(m.Intermediate)
	q, kv := int64(m.Heads)*int64(m.HeadDim), int64(m.KVHeads)*int64(m.HeadDim)
	t := Table{ModelType: "llama"}
	t.add("model.embed_tokens.weight", int64(m.Vocab), hidden)
	for i := range m.Layers {
		layer := "model.layers." + strconv.Itoa(i) + "."
		t.add(layer+"input_layernorm.weight", hidden)
		t.linear(layer+"self_attn.q_proj", q, hidden, m.AttentionBias)
		t.linear(layer+"self_attn.k_proj", kv, hidden, m.AttentionBias)
		t.linear(layer+"self_attn.v_proj", kv, hidden, m.AttentionBias)
		t.linear(layer+"self_attn.o_proj", hidden, q, m.AttentionBias)
		t.add(layer+"post_attention_layernorm.weight", hidden)
		t.linear(layer+"mlp.gate_proj", ff, hidden, m.MLPBias)
		t.linear(layer+"mlp.up_proj", ff, hidden, m.MLPBias)
		t.linear(layer+"mlp.down_proj", hidden, ff, m.MLPBias)
	}
	t.add("model.norm.weight", hidden)
	t.head(int64(m.Vocab), hidden, m.TieEmbeddings)
	t.drop(dropInvFreq, "model.layers.*.self_attn.rotary_emb.inv_freq")
	t.Specs = slices.Clip(t.Specs)
	return t
}
