package arch

import (
	"fmt"
	"slices"
)

// Qwen4Exp is the configuration of model type "qwen4_exp", the text part: gated delta nets and gated attention over
// blocks of positions that an indexer chooses, as many residual streams as Streams says, embeddings of n-grams in some
// layers, and experts in every layer. Absent keys have the defaults of transformers 5.23; sizes only inside
// text_config. Intermediate, and what Qwen35 says of further heads and of pictures, are not used.
type Qwen4Exp struct {
	Qwen35
	Mixture    Mixture
	Streams    int // residual streams, at least two
	StreamRank int // of the gates of what a block reads
	Index      BlockIndex
	NGrams     NGrams
}

// BlockIndex is the indexer of sparse attention over blocks: the average of the index keys of a block's positions
// stands for them. A row sees the best blocks, and the positions after the last whole block.
type BlockIndex struct {
	Heads, Dim int
	Budget     int // positions of the blocks that a row sees, if there are more; a multiple of Block
	Block      int // positions of a block
}

// Blocks returns the number of blocks that a row sees.
func (x BlockIndex) Blocks() int { return x.Budget / max(x.Block, 1) }

// indexedAttention are the types of layers with an indexer in transformers. Publishers call it full attention.
var indexedAttention = []string{"indexed_attention", "qwen_sparse_attention"}

func init() {
	register(Arch{
		ModelType:     "qwen4_exp",
		Aliases:       []string{"qwen4_exp_text"},
		Architectures: []string{"Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseQwen4Exp(config) },
		Chat:          &qwen35Chat,
		TextOnly:      true,
		Docs: Docs{
			Variants: "gated delta nets alternating with attention over blocks, residual streams, embeddings of n-grams, " +
				"whole or in shards (Qwen3.8-Flash-Next)",
			Rules: qwen35RulesDoc + "; so do indexers and what writes to residual streams; embeddings of n-grams get 8 bits",
		},
	})
}

// ParseQwen4Exp parses the config.json of a qwen4_exp model.
func ParseQwen4Exp(config []byte) (*Qwen4Exp, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	delete(top.raw, "vision_config") // pictures are not supported
	if kinds := o.strs("layer_types"); kinds != nil {
		for i, kind := range kinds {
			if slices.Contains(indexedAttention, kind) {
				kinds[i] = fullAttention
			}
		}
		o.set("layer_types", kinds)
	}
	o.def("partial_rotary_factor", 1)
	m := &Qwen4Exp{Qwen35: parseQwen35(top, o, commonDefaults{
		class: "Qwen4ExpForConditionalGeneration", vocab: 248320, hidden: 2048, layers: 40, heads: 16, kv: 2, dim: 256,
		ctx: 32768, eps: 1e-6,
	})}
	m.MTP, m.Vision, m.ImageToken, m.VideoToken, m.VisionStart, m.VisionEnd = 0, nil, 0, 0, 0, 0
	m.Delta.parseGate(o)
	m.Streams = o.integer("hc_count", 4, 2, maxStreams)
	m.StreamRank = o.integer("hc_lowrank", 320, 1, maxWidth)
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 512, perToken: 10, width: 512, sumToOne: true},
		"moe_intermediate_size")
	m.Mixture.Shared = o.integer("shared_expert_intermediate_size", 512, 1, maxWidth/64)
	m.Mixture.SharedGate = true
	if slices.Contains(m.Full, true) {
		m.parseIndex(o)
	}
	m.parseNGrams(o)
	return parsed(m, o)
}

// def sets a key of the rope that neither the configuration nor its rope parameters have.
func (o object) def(key string, value any) {
	in, ok := o.object("rope_scaling")
	if !ok {
		in, ok = o.object("rope_parameters")
	}
	if !o.has(key) && !(ok && in.has(key)) {
		o.set(key, value)
	}
}

// parseGate reads the activation of the output gate, if it is not that of the MLP.
func (d *GatedDelta) parseGate(o object) {
	const key = "output_gate_type"
	switch o.str(key, "silu") {
	case "silu":
	case "sigmoid":
		d.SigmoidGate = true
	default:
		o.fail(key, `be "silu" or "sigmoid"`)
	}
}

func (m *Qwen4Exp) parseIndex(o object) {
	m.Index = BlockIndex{
		Heads:  o.required("indexer_n_heads", 1, maxHeads),
		Dim:    o.required("indexer_head_dim", 2, maxHeadDim),
		Budget: o.required("indexer_budget", 1, maxContext),
		Block:  o.required("indexer_compress_ratio", 1, maxContext),
	}
	if o.required("indexer_kv_heads", 1, maxHeads) != 1 {
		o.fail("indexer_kv_heads", "be 1")
	}
	if m.Index.Budget%m.Index.Block != 0 {
		o.fail("indexer_budget", fmt.Sprintf("be a multiple of indexer_compress_ratio = %d", m.Index.Block))
	}
	if rotated := int(float64(m.HeadDim) * m.Rope.PartialFactor); m.Index.Dim < rotated || m.Index.Dim%4 != 0 {
		o.fail("indexer_head_dim", fmt.Sprintf("be a multiple of 4 and at least %d, the rotated channels of a head", rotated))
	}
}

// State implements [Model]. A layer has three states. Those of attention are keys and values, the index keys of the
// last block, and those of whole blocks; those of a delta net are its own and that of its embeddings of n-grams.
func (m *Qwen4Exp) State() []LayerState {
	var list []LayerState
	index, kv := int64(m.Index.Dim), m.kvStates(0, nil)
	for i, full := range m.Full {
		if full {
			list = append(list, kv[i], LayerState{PerToken: index, Window: int64(m.Index.Block), Exact: true},
				LayerState{PerEntry: index, Rate: int64(m.Index.Block), Exact: true})
			continue
		}
		list = append(list, m.Delta.state(), LayerState{}, LayerState{})
		if m.NGrams.table(i) != nil {
			g := m.NGrams
			// Tokens are 32-bit integers, which count as two elements.
			list[len(list)-2].Fixed = int64(g.Tail())*int64(m.Streams)*int64(m.Hidden) + 2*int64(g.Size-1)
		}
	}
	return list
}

// Facts implements [Model].
func (m *Qwen4Exp) Facts() Facts { return m.facts("qwen4_exp", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *Qwen4Exp) Rules() Rules {
	rules := deltaRules(m.Layers, ".linear_attn.in_proj_a.weight", ".linear_attn.in_proj_b.weight")
	rules.List = slices.Concat([]Rule{
		{Name: "embedding of n-grams", Of: Quantized, Ends: []string{nGramTable}, To: []Target{Int8, Base, Source}},
		{
			Name: "chooses blocks, or writes to residual streams", Of: Quantized,
			Ends: []string{".index_qk_proj.weight", ".block_inject_weight.weight"}, To: []Target{Source},
		},
	}, rules.List)
	return rules
}

// Table implements [Model].
func (m *Qwen4Exp) Table() Table {
	hidden := int64(m.Hidden)
	// In place of a last norm.
	last := func(t *Table, _ string) { m.streams(t, m.Prefix+"hyper_connection_mixer", false) }
	t := m.decoderWith("qwen4_exp", last, func(t *Table, layer string, i int) {
		if g := m.NGrams.table(i); g != nil {
			m.nGrams(t, layer+"ple", *g)
		}
		m.streams(t, layer+"attn_hyper_connection", true)
		if m.Full[i] {
			m.gatedAttention(t, layer+"self_attn")
			m.indexer(t, layer+"self_attn.indexer")
		} else {
			t.gatedDelta(layer+"linear_attn", m.Delta, hidden)
		}
		m.streams(t, layer+"mlp_hyper_connection", true)
		t.mixture(layer+"mlp", m.Mixture, m.Hidden)
	})
	t.dropTowers("qwen4_exp")
	t.leaveOut("mtp", "a head for tokens after the next, which is not supported for qwen4_exp", "mtp.*", "*.mtp.*")
	for _, name := range []string{"layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets"} {
		t.drop("it follows from the configuration", "*.ple_embedding."+name)
	}
	return t
}

// streams adds the gates of what a block reads from the residual streams and, if it writes, of what it writes to each.
func (m *Qwen4Exp) streams(t *Table, name string, writes bool) {
	all, rank := int64(m.Streams)*int64(m.Hidden), int64(m.StreamRank)
	t.norm(name+".hc_norm", all, true)
	t.linear(name+".input_mix_weight_down", rank, all, false, column)
	t.linear(name+".input_mix_weight_up", all, rank, false, row)
	if writes {
		t.linear(name+".block_inject_weight", int64(m.Streams), all, false, replicated)
	}
}

// indexer adds the projection and norms of an indexer's queries and key.
func (m *Qwen4Exp) indexer(t *Table, name string) {
	dim := int64(m.Index.Dim)
	t.linear(name+".index_qk_proj", (int64(m.Index.Heads)+1)*dim, int64(m.Hidden), false, replicated)
	t.norm(name+".q_layernorm", dim, true)
	t.norm(name+".k_layernorm", dim, true)
}
