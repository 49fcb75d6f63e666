package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen4Exp is the configuration of model type "qwen4_exp", the text part: gated delta nets and gated attention over
// blocks of positions that an indexer chooses, as many residual streams as Streams says, embeddings of n-grams in some
// layers, and experts in every layer. Absent keys have the defaults of transformers 5.23; sizes only inside
// text_config. Intermediate, and what Qwen35 says of further heads and of pictures, are not used.
type Qwen4Exp struct {
	Qwen35
	Mixture    config.Mixture
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
	arch.Register(arch.Arch{
		ModelType:     "qwen4_exp",
		Aliases:       []string{"qwen4_exp_text"},
		Architectures: []string{"Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"},
		Chat: &arch.Chat{
			Marks: []string{"qwen4exp", "qwen4_exp"}, Parser: "qwen3.5", Renderer: "qwen3.5", Thinks: true,
		},
		TextOnly: true,
		Idle: []arch.Idle{
			{Why: "all layers have experts, whose width has a key of its own", Keys: []string{"intermediate_size"}},
		},
		Docs: arch.Docs{
			Variants: "gated delta nets alternating with attention over blocks, residual streams, embeddings of n-grams, " +
				"whole or in shards (Qwen3.8-Flash-Next)",
			Rules: qwen35RulesDoc + "; so do indexers and what writes to residual streams; embeddings of n-grams get 8 bits",
		},
	}, ParseQwen4Exp)
}

// ParseQwen4Exp parses the config.json of a qwen4_exp model.
func ParseQwen4Exp(data []byte) (*Qwen4Exp, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	delete(top.Keys, "vision_config") // pictures are not supported
	if kinds := o.Strings("layer_types"); kinds != nil {
		for i, kind := range kinds {
			if slices.Contains(indexedAttention, kind) {
				kinds[i] = config.FullAttention
			}
		}
		o.Set("layer_types", kinds)
	}
	setDefault(o, "partial_rotary_factor", 1)
	m := &Qwen4Exp{Qwen35: parseQwen35(top, o, config.Defaults{
		Class: "Qwen4ExpForConditionalGeneration", Vocab: 248320, Hidden: 2048, Layers: 40, Heads: 16, KVHeads: 2,
		HeadDim: 256,
		Context: 32768, NormEps: 1e-6,
	})}
	m.MTP, m.Vision, m.ImageToken, m.VideoToken, m.VisionStart, m.VisionEnd = 0, nil, 0, 0, 0, 0
	parseGate(&m.Delta, o)
	m.Streams = o.Integer("hc_count", 4, 2, config.MaxStreams)
	m.StreamRank = o.Integer("hc_lowrank", 320, 1, config.MaxWidth)
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 512, PerToken: 10, Width: 512, SumToOne: true},
		"moe_intermediate_size")
	m.Mixture.Shared = o.Integer("shared_expert_intermediate_size", 512, 1, config.MaxWidth/64)
	m.Mixture.SharedGate = true
	if slices.Contains(m.Full, true) {
		m.parseIndex(o)
	}
	m.parseNGrams(o)
	return config.Done(m, o)
}

// setDefault sets a key of the rope that neither the configuration nor its rope parameters have.
func setDefault(o config.Object, key string, value any) {
	in, ok := o.Object("rope_scaling")
	if !ok {
		in, ok = o.Object("rope_parameters")
	}
	if !o.Has(key) && !(ok && in.Has(key)) {
		o.Set(key, value)
	}
}

// parseGate reads the activation of the output gate, if it is not that of the MLP.
func parseGate(d *config.GatedDelta, o config.Object) {
	const key = "output_gate_type"
	switch o.String(key, "silu") {
	case "silu":
	case "sigmoid":
		d.SigmoidGate = true
	default:
		o.Fail(key, `be "silu" or "sigmoid"`)
	}
}

func (m *Qwen4Exp) parseIndex(o config.Object) {
	m.Index = BlockIndex{
		Heads:  o.Required("indexer_n_heads", 1, config.MaxHeads),
		Dim:    o.Required("indexer_head_dim", 2, config.MaxHeadDim),
		Budget: o.Required("indexer_budget", 1, config.MaxContext),
		Block:  o.Required("indexer_compress_ratio", 1, config.MaxContext),
	}
	if o.Required("indexer_kv_heads", 1, config.MaxHeads) != 1 {
		o.Fail("indexer_kv_heads", "be 1")
	}
	if m.Index.Budget%m.Index.Block != 0 {
		o.Fail("indexer_budget", fmt.Sprintf("be a multiple of indexer_compress_ratio = %d", m.Index.Block))
	}
	if rotated := int(float64(m.HeadDim) * m.Rope.PartialFactor); m.Index.Dim < rotated || m.Index.Dim%4 != 0 {
		o.Fail("indexer_head_dim", fmt.Sprintf("be a multiple of 4 and at least %d, the rotated channels of a head", rotated))
	}
}

// State implements [arch.Model]. A layer has three states. Those of attention are keys and values, the index keys of
// the last block, and those of whole blocks; those of a delta net are its own and that of its embeddings of n-grams.
func (m *Qwen4Exp) State() []config.LayerState {
	var list []config.LayerState
	index, kv := int64(m.Index.Dim), m.KVStates(0, nil)
	for i, full := range m.Full {
		if full {
			list = append(list, kv[i], config.LayerState{PerToken: index, Window: int64(m.Index.Block), Exact: true},
				config.LayerState{PerEntry: index, Rate: int64(m.Index.Block), Exact: true})
			continue
		}
		list = append(list, m.Delta.LayerState(), config.LayerState{}, config.LayerState{})
		if m.NGrams.table(i) != nil {
			g := m.NGrams
			// Tokens are 32-bit integers, which count as two elements.
			list[len(list)-2].Fixed = int64(g.Tail())*int64(m.Streams)*int64(m.Hidden) + 2*int64(g.Size-1)
		}
	}
	return list
}

func (m *Qwen4Exp) Facts() config.Facts { return m.FactsAs("qwen4_exp", m.Rope, m.Table()) }

func (m *Qwen4Exp) Rules() precision.Rules {
	rules := config.DeltaRules(m.Layers, ".linear_attn.in_proj_a.weight", ".linear_attn.in_proj_b.weight")
	rules.List = slices.Concat([]precision.Rule{
		{Name: "embedding of n-grams", Of: precision.Quantized, Ends: []string{nGramTable},
			To: []precision.Target{precision.Int8, precision.Base, precision.Source}},
		{
			Name: "chooses blocks, or writes to residual streams", Of: precision.Quantized,
			Ends: []string{".index_qk_proj.weight", ".block_inject_weight.weight"}, To: []precision.Target{precision.Source},
		},
	}, rules.List)
	return rules
}

func (m *Qwen4Exp) Table() table.Table {
	hidden := int64(m.Hidden)
	// In place of a last norm.
	last := func(t *table.Table, _ string) { m.streams(t, m.Prefix+"hyper_connection_mixer", false) }
	t := m.TableWith("qwen4_exp", last, func(t *table.Table, layer string, i int) {
		if g := m.NGrams.table(i); g != nil {
			m.nGrams(t, layer+"ple", *g)
		}
		m.streams(t, layer+"attn_hyper_connection", true)
		if m.Full[i] {
			m.gatedAttention(t, layer+"self_attn")
			m.indexer(t, layer+"self_attn.indexer")
		} else {
			m.Delta.AddTo(t, layer+"linear_attn", hidden)
		}
		m.streams(t, layer+"mlp_hyper_connection", true)
		m.Mixture.AddTo(t, layer+"mlp", m.Hidden)
	})
	config.DropTowers(&t, "qwen4_exp")
	t.LeaveOut("mtp", "a head for tokens after the next, which is not supported for qwen4_exp", "mtp.*", "*.mtp.*")
	for _, name := range []string{"layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets"} {
		t.Drop("it follows from the configuration", "*.ple_embedding."+name)
	}
	t.Undivided = "indexers and mixed streams read all heads"
	return t
}

// streams adds the gates of what a block reads from the residual streams and, if it writes, of what it writes to each.
func (m *Qwen4Exp) streams(t *table.Table, name string, writes bool) {
	all, rank := int64(m.Streams)*int64(m.Hidden), int64(m.StreamRank)
	t.Norm(name+".hc_norm", all, true)
	t.Linear(name+".input_mix_weight_down", rank, all, false, table.Outputs)
	t.Linear(name+".input_mix_weight_up", all, rank, false, table.Inputs)
	if writes {
		t.Linear(name+".block_inject_weight", int64(m.Streams), all, false, table.Whole)
	}
}

// indexer adds the projection and norms of an indexer's queries and key.
func (m *Qwen4Exp) indexer(t *table.Table, name string) {
	dim := int64(m.Index.Dim)
	t.Linear(name+".index_qk_proj", (int64(m.Index.Heads)+1)*dim, int64(m.Hidden), false, table.Whole)
	t.Norm(name+".q_layernorm", dim, true)
	t.Norm(name+".k_layernorm", dim, true)
}

func (m *Qwen4Exp) Carried(int) int64 { return int64(m.Streams) * int64(m.Hidden) }
