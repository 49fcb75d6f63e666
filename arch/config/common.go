package config

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/arch/table"
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

// Defaults are the values of absent keys. A size with default 0 is required.
type Defaults struct {
	Class                                                   string
	Vocab, Hidden, Layers, Heads, KVHeads, HeadDim, Context int
	NormEps                                                 float64
	Tied                                                    bool
	BOS, EOS                                                []int32
}

// TextPrefixes are all prefixes that text models are published under, the most specific first.
var TextPrefixes = []string{table.NestedPrefix, "language_model.model.", table.TextPrefix, "language_model.", ""}

// OpenText parses a config.json. top is the whole; text is top overlaid with text_config, if there is one.
func OpenText(config []byte) (top, text Object, err error) {
	if top, err = Parse(config); err != nil {
		return top, top, err
	}
	text, _ = top.overlay("text_config")
	return top, text, top.Failed()
}

// Nested reports whether o is a text_config.
func (o Object) Nested() bool { return o.outer != nil }

// Size reads a size. Inside text_config an absent size has the default, because transformers omits keys that equal the
// class's default there. At the top level it omits none, so an absent size is an error.
func (o Object) Size(key string, def, hi int) int {
	if !o.Nested() || def == 0 {
		return o.Required(key, 1, hi)
	}
	return o.Integer(key, def, 1, hi)
}

func ParseCommon(top, o Object, d Defaults) Common {
	c := Common{
		Architecture:  d.Class,
		DType:         o.String("dtype", o.String("torch_dtype", "")),
		Vocab:         o.Size("vocab_size", d.Vocab, MaxVocab),
		Hidden:        o.Size("hidden_size", d.Hidden, MaxWidth),
		Layers:        o.Size("num_hidden_layers", d.Layers, MaxLayers),
		Heads:         o.Size("num_attention_heads", d.Heads, MaxHeads),
		Context:       o.Integer("max_position_embeddings", d.Context, 1, MaxContext),
		NormEps:       o.Above("rms_norm_eps", d.NormEps, 0),
		AttentionBias: o.Bool("attention_bias", false),
		OutputBias:    o.Bool("attention_bias", false),
		// The top level owns the head, so its key takes precedence over text_config's.
		TieEmbeddings: top.Bool("tie_word_embeddings", o.Bool("tie_word_embeddings", d.Tied)),
		BOS:           top.Tokens("bos_token_id", o.Tokens("bos_token_id", d.BOS)),
		EOS:           top.Tokens("eos_token_id", o.Tokens("eos_token_id", d.EOS)),
		Prefix:        table.TextPrefix,
	}
	if o.Nested() {
		c.Prefix = table.NestedPrefix
	}
	if classes := top.Strings("architectures"); len(classes) > 0 {
		c.Architecture = classes[0]
		c.Headless = IsBaseClass(classes[0]) && classes[0] != d.Class
		c.TieEmbeddings = c.TieEmbeddings || c.Headless
	}
	if o.IsNull("num_key_value_heads") {
		d.KVHeads = 0 // as many as query heads
	}
	c.KVHeads = o.Integer("num_key_value_heads", orDefault(d.KVHeads, c.Heads), 1, MaxHeads)
	if c.Heads%c.KVHeads != 0 {
		o.Fail("num_key_value_heads", fmt.Sprintf("divide num_attention_heads = %d", c.Heads))
	}
	c.HeadDim = parseHeadDim(o, c.Hidden, c.Heads, d.HeadDim)
	return c
}

// parseHeadDim reads head_dim. If it is absent the result is def, or hidden/heads if def is 0.
func parseHeadDim(o Object, hidden, heads, def int) int {
	key := "head_dim"
	if o.IsNull(key) {
		def = 0
	}
	if !o.Has(key) && def == 0 {
		if key = "hidden_size"; hidden%heads != 0 {
			o.Fail(key, fmt.Sprintf("be a multiple of num_attention_heads = %d, since there is no head_dim", heads))
		}
		def = hidden / heads
	}
	dim := o.Integer("head_dim", def, 1, MaxHeadDim)
	if dim%2 != 0 {
		o.Fail(key, fmt.Sprintf("give an even head size for rope (it is %d)", dim))
	}
	if dim > MaxHeadDim {
		o.Fail(key, fmt.Sprintf("give a head size <= %d (it is %d)", MaxHeadDim, dim))
	}
	return dim
}

func (c Common) FactsAs(modelType string, r Rope, t table.Table) Facts {
	return Facts{
		ModelType: modelType, Architecture: c.Architecture, DType: c.DType, Vocab: int64(c.Vocab), Hidden: int64(c.Hidden),
		Layers: int64(c.Layers), Context: r.maxSequence(c.Context), Params: t.Params(),
	}
}

// TextPart returns the part of the text model's tensors.
func (c Common) TextPart() table.Part {
	p := table.Part{Name: "text", Prefix: c.Prefix}
	for _, prefix := range TextPrefixes {
		if prefix != c.Prefix {
			p.Accept = append(p.Accept, prefix)
		}
	}
	return p
}

// LayerName returns the name prefix of layer i's tensors.
func (c Common) LayerName(i int) string { return c.Prefix + "layers." + strconv.Itoa(i) + "." }

// TableOf makes the tensor table of a text model. layer adds the tensors of a layer, whose names start with name. With
// offset the weight of the last norm is used as 1 + w.
func (c Common) TableOf(modelType string, offset bool, layer func(t *table.Table, name string, i int)) table.Table {
	norm := func(t *table.Table, name string) { t.Norm(name, int64(c.Hidden), offset) }
	return c.TableWith(modelType, norm, layer)
}

// TableWith is decoder with another last norm.
func (c Common) TableWith(
	modelType string, norm func(t *table.Table, name string), layer func(t *table.Table, name string, i int),
) table.Table {
	t := table.Table{ModelType: modelType, Parts: []table.Part{c.TextPart()}}
	t.Add(c.Embedding()+".weight", table.EachToken, int64(c.Vocab), int64(c.Hidden))
	for i := range c.Layers {
		layer(&t, c.LayerName(i), i)
	}
	norm(&t, c.LastNorm())
	c.head(&t)
	return t
}

func (c Common) Base() Common { return c }

// CommonOf returns what decoders share, of a model.
func CommonOf(m any) Common {
	if d, ok := m.(interface{ Base() Common }); ok {
		return d.Base()
	}
	return Common{}
}

// QueryWidth returns the width of all query heads.
func (c Common) QueryWidth() int64 { return int64(c.Heads) * int64(c.HeadDim) }

// AddProjections adds the projections of grouped-query attention. queries is the number of rows of q_proj, which is
// larger than o_proj's input if q_proj also produces an output gate.
func (c Common) AddProjections(t *table.Table, name string, queries int64) {
	kv := int64(c.KVHeads) * int64(c.HeadDim)
	keys := table.KeyRows(c.Heads, c.KVHeads)
	t.Linear(name+".q_proj", queries, int64(c.Hidden), c.AttentionBias, table.QueryRows(c.Heads, c.KVHeads))
	t.Linear(name+".k_proj", kv, int64(c.Hidden), c.AttentionBias, keys)
	t.Linear(name+".v_proj", kv, int64(c.Hidden), c.AttentionBias, keys)
	t.Linear(name+".o_proj", int64(c.Hidden), c.QueryWidth(), c.OutputBias, table.QueryColumns(c.Heads, c.KVHeads))
}

// AddAttention is projections with query and key norms per head.
func (c Common) AddAttention(t *table.Table, name string, queries int64, offset bool) {
	c.AddProjections(t, name, queries)
	t.Norm(name+".q_norm", int64(c.HeadDim), offset)
	t.Norm(name+".k_norm", int64(c.HeadDim), offset)
}

// AddMLP adds a gated feed-forward block.
func (c Common) AddMLP(t *table.Table, name string, width int) {
	hidden, wide := int64(c.Hidden), int64(width)
	t.Linear(name+".gate_proj", wide, hidden, c.MLPBias, table.Outputs)
	t.Linear(name+".up_proj", wide, hidden, c.MLPBias, table.Outputs)
	t.Linear(name+".down_proj", hidden, wide, c.MLPBias, table.Inputs)
}

// AddEnd adds the tensors after the last layer, and the tensors that are dropped from any text model.
func (c Common) AddEnd(t *table.Table, offset bool) {
	t.Norm(c.Prefix+"norm", int64(c.Hidden), offset)
	c.head(t)
}

// AddHeadBias adds the bias of the output head.
func (c Common) AddHeadBias(t *table.Table) {
	if !c.Headless {
		t.Add("lm_head.bias", table.Outputs, int64(c.Vocab))
	}
}

// head adds the output head, and the tensors that are dropped from any text model.
func (c Common) head(t *table.Table) {
	t.Head(int64(c.Vocab), int64(c.Hidden), c.TieEmbeddings, table.HeadAliases...)
	t.Drop(table.InvFreq, c.Prefix+"layers.*.self_attn.rotary_emb.inv_freq", c.Prefix+"rotary_emb.inv_freq")
}

// JoinedQKV returns the rows of queries, keys and values, one after the other.
func (c Common) JoinedQKV() map[string]table.RowsOf {
	kv := int64(c.KVHeads) * int64(c.HeadDim)
	return table.Consecutive(table.QKV, c.QueryWidth(), kv, kv)
}

// GroupedQKV returns the rows of queries, keys and values where each KV head follows the query heads that read it.
func (c Common) GroupedQKV() map[string]table.RowsOf {
	dim, groups, queries := int64(c.HeadDim), int64(c.KVHeads), int64(c.Heads/c.KVHeads)
	parts, step := map[string]table.RowsOf{}, (queries+2)*dim
	for i, name := range table.QKV {
		r := table.RowsOf{Begin: (queries + int64(i) - 1) * dim, Count: dim, Step: step, Times: groups, Of: step * groups}
		if i == 0 {
			r.Begin, r.Count = 0, queries*dim
		}
		parts[name] = r
	}
	return parts
}
