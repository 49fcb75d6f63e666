package arch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Common holds the configuration fields that this package's decoders share.
type Common struct {
	Architecture  string // class name, as published
	DType         string // torch_dtype or dtype, e.g. "bfloat16"; "" if absent
	Vocab         int
	Hidden        int
	Layers        int
	Heads         int // query heads
	KVHeads       int // key and value heads; divides Heads
	HeadDim       int // even
	Context       int // max_position_embeddings
	NormEps       float64
	AttentionBias bool // biases on q, k and v
	OutputBias    bool // a bias on o
	MLPBias       bool // biases on gate, up and down
	TieEmbeddings bool // tied embeddings: the output head is the embedding
	Headless      bool // there is no output head: the model computes embeddings only; TieEmbeddings is true, too
	BOS, EOS      []int32
	// Prefix is the prefix of the text model's tensor names: "model.", or "model.language_model." if the configuration
	// nests the text model in a multimodal one.
	Prefix string
	// EmbedName and NormName are the names of the embedding and of the last norm after the prefix, if they are not
	// "embed_tokens" and "norm".
	EmbedName, NormName string
}

// Embedding returns the name of the embedding.
func (c Common) Embedding() string { return c.Prefix + cmp.Or(c.EmbedName, "embed_tokens") }

// LastNorm returns the name of the norm before the head.
func (c Common) LastNorm() string { return c.Prefix + cmp.Or(c.NormName, "norm") }

// commonDefaults are the values of absent keys. A size with default 0 is required.
type commonDefaults struct {
	class                                      string
	vocab, hidden, layers, heads, kv, dim, ctx int
	eps                                        float64
	tied                                       bool
	bos, eos                                   []int32
}

// Canonical prefixes of text models.
const (
	textPrefix   = "model."
	nestedPrefix = "model.language_model."
)

// textPrefixes are all prefixes that text models are published under, the most specific first.
var textPrefixes = []string{nestedPrefix, "language_model.model.", textPrefix, "language_model.", ""}

// headAliases are other published names of the output projection.
var headAliases = []string{"language_model.lm_head.weight", "model.language_model.lm_head.weight"}

// openText parses a config.json. top is the whole; text is top overlaid with text_config, if there is one.
func openText(config []byte) (top, text object, err error) {
	if top, err = parseObject(config); err != nil {
		return top, top, err
	}
	text, _ = top.overlay("text_config")
	return top, text, top.failed()
}

// nested reports whether o is a text_config.
func (o object) nested() bool { return o.outer != nil }

// size reads a size. Inside text_config an absent size has the default, because transformers omits keys that equal the
// class's default there. At the top level it omits none, so an absent size is an error.
func (o object) size(key string, def, hi int) int {
	if !o.nested() || def == 0 {
		return o.required(key, 1, hi)
	}
	return o.integer(key, def, 1, hi)
}

func parseCommon(top, o object, d commonDefaults) Common {
	c := Common{
		Architecture:  d.class,
		DType:         o.str("dtype", o.str("torch_dtype", "")),
		Vocab:         o.size("vocab_size", d.vocab, maxVocab),
		Hidden:        o.size("hidden_size", d.hidden, maxWidth),
		Layers:        o.size("num_hidden_layers", d.layers, maxLayers),
		Heads:         o.size("num_attention_heads", d.heads, maxHeads),
		Context:       o.integer("max_position_embeddings", d.ctx, 1, maxContext),
		NormEps:       o.above("rms_norm_eps", d.eps, 0),
		AttentionBias: o.boolean("attention_bias", false),
		OutputBias:    o.boolean("attention_bias", false),
		// The top level owns the head, so its key takes precedence over text_config's.
		TieEmbeddings: top.boolean("tie_word_embeddings", o.boolean("tie_word_embeddings", d.tied)),
		BOS:           top.tokens("bos_token_id", o.tokens("bos_token_id", d.bos)),
		EOS:           top.tokens("eos_token_id", o.tokens("eos_token_id", d.eos)),
		Prefix:        textPrefix,
	}
	if o.nested() {
		c.Prefix = nestedPrefix
	}
	if classes := top.strs("architectures"); len(classes) > 0 {
		c.Architecture = classes[0]
		c.Headless = isBaseClass(classes[0])
		c.TieEmbeddings = c.TieEmbeddings || c.Headless
	}
	if o.isNull("num_key_value_heads") {
		d.kv = 0 // as many as query heads
	}
	c.KVHeads = o.integer("num_key_value_heads", orDefault(d.kv, c.Heads), 1, maxHeads)
	if c.Heads%c.KVHeads != 0 {
		o.fail("num_key_value_heads", fmt.Sprintf("divide num_attention_heads = %d", c.Heads))
	}
	c.HeadDim = parseHeadDim(o, c.Hidden, c.Heads, d.dim)
	return c
}

// parseHeadDim reads head_dim. If it is absent the result is def, or hidden/heads if def is 0.
func parseHeadDim(o object, hidden, heads, def int) int {
	key := "head_dim"
	if o.isNull(key) {
		def = 0
	}
	if !o.has(key) && def == 0 {
		if key = "hidden_size"; hidden%heads != 0 {
			o.fail(key, fmt.Sprintf("be a multiple of num_attention_heads = %d, since there is no head_dim", heads))
		}
		def = hidden / heads
	}
	dim := o.integer("head_dim", def, 1, maxHeadDim)
	if dim%2 != 0 {
		o.fail(key, fmt.Sprintf("give an even head size for rope (it is %d)", dim))
	}
	if dim > maxHeadDim {
		o.fail(key, fmt.Sprintf("give a head size <= %d (it is %d)", maxHeadDim, dim))
	}
	return dim
}

// activation reads the activation function. names are synonyms; the result is the first.
func (o object) activation(key string, names ...string) string {
	got := o.str(key, names[0])
	for _, name := range names {
		if got == name {
			return names[0]
		}
	}
	o.fail(key, fmt.Sprintf("be %q", names[0]))
	return names[0]
}

// Names of activation functions.
var (
	silu = []string{"silu", "swish"}
	gelu = []string{"gelu_pytorch_tanh", "gelu_tanh"}
)

func (c Common) facts(modelType string, r Rope, t Table) Facts {
	return Facts{
		ModelType: modelType, Architecture: c.Architecture, DType: c.DType, Vocab: int64(c.Vocab), Hidden: int64(c.Hidden),
		Layers: int64(c.Layers), Context: r.maxSequence(c.Context), Params: t.Params(),
		Wide: slices.Contains(wideTypes, modelType),
	}
}

// wideTypes are the model types whose published models exceed the range of float16. vLLM refuses to run Gemma 3 and GLM
// 4 in it, and scales DeepSeek's layers down:
// https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py
// https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/deepseek_v2.py
var wideTypes = []string{
	"deepseek_v2", "deepseek_v3", "deepseek_v32", "gemma3", "gemma3n", "gemma4", "gemma4_assistant", "glm4_moe_lite",
	"glm_moe_dsa",
}

// textPart returns the part of the text model's tensors.
func (c Common) textPart() Part {
	p := Part{Name: "text", Prefix: c.Prefix}
	for _, prefix := range textPrefixes {
		if prefix != c.Prefix {
			p.Accept = append(p.Accept, prefix)
		}
	}
	return p
}

// layer returns the name prefix of layer i's tensors.
func (c Common) layer(i int) string { return c.Prefix + "layers." + strconv.Itoa(i) + "." }

// decoder makes the tensor table of a text model. layer adds the tensors of a layer, whose names start with name. With
// offset the weight of the last norm is used as 1 + w.
func (c Common) decoder(modelType string, offset bool, layer func(t *Table, name string, i int)) Table {
	norm := func(t *Table, name string) { t.norm(name, int64(c.Hidden), offset) }
	return c.decoderWith(modelType, norm, layer)
}

// decoderWith is decoder with another last norm.
func (c Common) decoderWith(
	modelType string, norm func(t *Table, name string), layer func(t *Table, name string, i int),
) Table {
	t := Table{ModelType: modelType, Parts: []Part{c.textPart()}}
	t.add(c.Embedding()+".weight", byToken, int64(c.Vocab), int64(c.Hidden))
	for i := range c.Layers {
		layer(&t, c.layer(i), i)
	}
	norm(&t, c.LastNorm())
	c.head(&t)
	return t
}

func (c Common) common() Common { return c }

// queries returns the width of all query heads.
func (c Common) queries() int64 { return int64(c.Heads) * int64(c.HeadDim) }

// projections adds the projections of grouped-query attention. queries is the number of rows of q_proj, which is larger
// than o_proj's input if q_proj also produces an output gate.
func (c Common) projections(t *Table, name string, queries int64) {
	kv := int64(c.KVHeads) * int64(c.HeadDim)
	keys := keyRows(c.Heads, c.KVHeads)
	t.linear(name+".q_proj", queries, int64(c.Hidden), c.AttentionBias, queryRows(c.Heads, c.KVHeads))
	t.linear(name+".k_proj", kv, int64(c.Hidden), c.AttentionBias, keys)
	t.linear(name+".v_proj", kv, int64(c.Hidden), c.AttentionBias, keys)
	t.linear(name+".o_proj", int64(c.Hidden), c.queries(), c.OutputBias, queryColumns(c.Heads, c.KVHeads))
}

// attention is projections with query and key norms per head.
func (c Common) attention(t *Table, name string, queries int64, offset bool) {
	c.projections(t, name, queries)
	t.norm(name+".q_norm", int64(c.HeadDim), offset)
	t.norm(name+".k_norm", int64(c.HeadDim), offset)
}

// mlp adds a gated feed-forward block.
func (c Common) mlp(t *Table, name string, width int) {
	hidden, wide := int64(c.Hidden), int64(width)
	t.linear(name+".gate_proj", wide, hidden, c.MLPBias, column)
	t.linear(name+".up_proj", wide, hidden, c.MLPBias, column)
	t.linear(name+".down_proj", hidden, wide, c.MLPBias, row)
}

// end adds the tensors after the last layer, and the tensors that are dropped from any text model.
func (c Common) end(t *Table, offset bool) {
	t.norm(c.Prefix+"norm", int64(c.Hidden), offset)
	c.head(t)
}

// headBias adds the bias of the output head.
func (c Common) headBias(t *Table) {
	if !c.Headless {
		t.add("lm_head.bias", column, int64(c.Vocab))
	}
}

// head adds the output head, and the tensors that are dropped from any text model.
func (c Common) head(t *Table) {
	t.head(int64(c.Vocab), int64(c.Hidden), c.TieEmbeddings, headAliases...)
	t.drop(dropInvFreq, c.Prefix+"layers.*.self_attn.rotary_emb.inv_freq", c.Prefix+"rotary_emb.inv_freq")
}
