package arch

import (
	"fmt"
	"maps"
	"math"
)

// DeepseekV4 is the configuration of model type "deepseek_v4": one KV head whose key is its value, a window of
// positions and, in most layers, compressed ones before it; residual streams that are mixed by hyper-connections; and
// experts in every layer. Absent keys have the defaults of transformers 5.23; sizes are required. Rope is of layers
// without compression, Window of all layers.
type DeepseekV4 struct {
	Dense
	RopeDim      int // rotated channels, the last of a head
	CompressRope Rope
	Compression  []Compression // by layer
	QueryRank    int
	OutGroups    int // groups of heads, each with a projection to OutRank channels of its own
	OutRank      int
	Index        Index // its budget counts entries
	Streams      HyperStreams
	Mixture      Mixture
	Hash         []bool // by layer: the token chooses the experts
}

// Compression says how a layer keeps positions that leave its window.
type Compression struct {
	Rate    int  // positions of an entry; 0 = it forgets them
	Overlap bool // an entry is also of the positions of the one before it, and an indexer chooses entries
}

// HyperStreams are residual streams whose mixture is computed for each row.
type HyperStreams struct {
	Count      int
	Iterations int // of the normalization of mixing matrices
	Eps        float64
}

// Types of layers in configurations.
const (
	compressedSparse  = "compressed_sparse_attention"
	heavilyCompressed = "heavily_compressed_attention"
)

func init() {
	register(Arch{
		ModelType:     "deepseek_v4",
		Aliases:       []string{deepseekRef},
		Architectures: []string{"DeepseekV4ForCausalLM"},
		Names:         []string{"moe_intermediate_size", "intermediate_size"},
		Parse:         func(config []byte) (Model, error) { return ParseDeepseekV4(config) },
		Docs: Docs{
			Variants: "compressed and sliding layers, hyper-connections, experts chosen by scores or by token; published names",
			Rules:    "generic, also for experts; compressors, weights of index heads and hyper-connections keep their type",
		},
	})
}

// ParseDeepseekV4 parses the config.json of a deepseek_v4 model.
func ParseDeepseekV4(config []byte) (*DeepseekV4, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV4{Dense: Dense{Common: parseCommon(top, o, commonDefaults{
		class: "DeepseekV4ForCausalLM", kv: 1, dim: 512, ctx: 1 << 20, eps: 1e-6, bos: []int32{0}, eos: []int32{1},
	}), Activation: o.activation("hidden_act", silu...)}}
	if m.KVHeads != 1 {
		o.fail("num_key_value_heads", "be 1")
	}
	if m.AttentionBias {
		o.fail("attention_bias", "be false")
	}
	m.QueryRank = o.integer("q_lora_rank", 1024, 1, maxWidth)
	m.OutGroups, m.OutRank = o.integer("o_groups", 8, 1, maxHeads), o.integer("o_lora_rank", 1024, 1, maxWidth)
	if m.Heads%m.OutGroups != 0 {
		o.fail("o_groups", fmt.Sprintf("divide num_attention_heads = %d", m.Heads))
	}
	m.Streams = HyperStreams{
		Count:      o.integer("hc_mult", 4, 1, 64),
		Iterations: o.integer("hc_sinkhorn_iters", 20, 1, 1000),
		Eps:        o.atLeast("hc_eps", 1e-6, 0),
	}
	m.everywhere(o.integer("sliding_window", 128, 1, maxContext))
	m.compression(o)
	m.ropes(o)
	m.parseIndex(o)
	m.experts(o)
	return parsed(m, o)
}

// compression reads which layers compress: a list of types with rates for each, or the publisher's list of rates.
func (m *DeepseekV4) compression(o object) {
	rates := map[string]int{compressedSparse: 4, heavilyCompressed: 128}
	in, _ := o.object("compress_rates")
	for kind, old := range map[string]string{
		compressedSparse: "compress_rate_csa", heavilyCompressed: "compress_rate_hca",
	} {
		if in.raw != nil {
			rates[kind] = in.integer(kind, rates[kind], 1, maxContext)
		}
		rates[kind] = o.integer(old, rates[kind], 1, maxContext)
	}
	kinds := o.kinds("layer_types", m.Layers, slidingAttention, compressedSparse, heavilyCompressed)
	list := o.integers("compress_ratios", maxLayers+16, 0, maxContext)
	if kinds == nil && list != nil && len(list) < m.Layers {
		o.fail("compress_ratios", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
		return
	}
	m.Compression = make([]Compression, m.Layers)
	for i := range m.Compression {
		kind := heavilyCompressed
		switch {
		case kinds != nil:
			kind = kinds[i]
		case list != nil && list[i] == 0:
			kind = slidingAttention
		case list != nil && list[i] == 4 || list == nil && i > 2 && i%2 == 1:
			kind = compressedSparse
		case list != nil && list[i] != 128:
			o.fail("compress_ratios", "hold 0, 4 and 128 only")
		}
		m.Compression[i] = Compression{Rate: rates[kind], Overlap: kind == compressedSparse}
	}
}

// ropes reads the ropes of layers with and without compression: parameters for each, or the publisher's keys, of which
// rope_scaling is for layers with compression.
func (m *DeepseekV4) ropes(o object) {
	part := 64.0 / 512
	if o.has("qk_rope_head_dim") {
		part = float64(o.integer("qk_rope_head_dim", 64, 2, m.HeadDim)) / float64(m.HeadDim)
	}
	part = o.number("partial_rotary_factor", part, isShare, "be > 0 and <= 1")
	m.RopeDim = int(float64(m.HeadDim) * part)
	if m.RopeDim < 2 || m.RopeDim%2 != 0 {
		o.fail("head_dim", fmt.Sprintf("give an even number of rotated channels (it is %d)", m.RopeDim))
	}
	types := ropeOptions{types: []RopeType{RopeDefault, RopeLinear, RopeYarn}, headDim: m.RopeDim}
	theta := o.theta("rope_theta", defaultTheta)
	compress := o.theta("compress_rope_theta", 160000)
	m.Rope = Rope{Type: RopeDefault, Theta: theta}
	in, given := o.object("rope_scaling")
	if !given {
		in, given = o.object("rope_parameters")
	}
	if own, nested := in.object("main"); given && nested {
		m.Rope = readRope(o, own, theta, 1, m.Context, types)
		in, given = in.object("compress")
		if !given {
			o.fail("rope_parameters", "hold parameters for main and compress")
		}
	} else if given {
		in.raw = maps.Clone(in.raw)
		delete(in.raw, "rope_theta") // of the others
	}
	if m.CompressRope = (Rope{Type: RopeDefault, Theta: compress}); given {
		m.CompressRope = readRope(o, in, compress, 1, m.Context, types)
	}
	for _, r := range []*Rope{&m.Rope, &m.CompressRope} {
		r.PartialFactor = 1
		if r.Type == RopeYarn && r.AttentionFactor == 0 {
			r.AttentionFactor = 1
		}
	}
}

// parseIndex reads the keys of indexers.
func (m *DeepseekV4) parseIndex(o object) {
	m.Index = Index{
		Heads:  o.integer("index_n_heads", 64, 1, maxHeads),
		Dim:    o.integer("index_head_dim", 128, 1, maxHeadDim),
		Budget: o.integer("index_topk", 512, 1, maxContext),
	}
	if m.Index.Dim < m.RopeDim || m.Index.Dim%4 != 0 {
		o.fail("index_head_dim", fmt.Sprintf("be a multiple of 4 and at least %d, the rotated channels", m.RopeDim))
	}
}

// experts reads the keys of experts.
func (m *DeepseekV4) experts(o object) {
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 256, perToken: 6, width: 2048, sumToOne: true},
		"moe_intermediate_size")
	x.Experts.Clamp = Clamp{Limit: o.above("swiglu_limit", 10, 0)}
	x.Shared = x.Experts.Intermediate
	x.Router = Router{
		Float32: true, Correction: true, SqrtSoftplus: true, Scaling: o.v4Scaling(x.Experts.Count),
	}
	switch {
	case !x.Experts.NormTopK:
		o.fail("norm_topk_prob", "be true")
	case o.integer("n_shared_experts", 1, 0, 64) != 1:
		o.fail("n_shared_experts", "be 1")
	case o.str("scoring_func", "sqrtsoftplus") != "sqrtsoftplus":
		o.fail("scoring_func", `be "sqrtsoftplus"`)
	case o.str("topk_method", "noaux_tc") != "noaux_tc":
		o.fail("topk_method", `be "noaux_tc"`)
	case m.MLPBias:
		o.fail("mlp_bias", "be false")
	}
	kinds := o.kinds("mlp_layer_types", m.Layers, "hash_moe", "moe")
	hashed := o.integer("num_hash_layers", 3, 0, maxLayers)
	m.Hash = make([]bool, m.Layers)
	for i := range m.Hash {
		m.Hash[i] = i < hashed
		if kinds != nil {
			m.Hash[i] = kinds[i] == "hash_moe"
		}
	}
}

// deepseekRef is the type of configurations that leave out keys which the publisher's code has.
const deepseekRef = "deepseek_ref"

// v4Scaling reads the factor of the experts' weights. No tensor tells it, and a deepseek_ref leaves it out: it is then
// the one of the published model with that many experts, Flash or Pro.
func (o object) v4Scaling(experts int) float64 {
	const key = "routed_scaling_factor"
	def := 1.5
	if o.str("model_type", "") == deepseekRef && !o.has(key) {
		var published bool
		if def, published = map[int]float64{256: 1.5, 384: 2.5}[experts]; !published {
			o.missing(key)
			return 1
		}
	}
	return o.above(key, def, 0)
}

// AttentionScale returns the factor of the attention scores.
func (m *DeepseekV4) AttentionScale() float64 { return 1 / math.Sqrt(float64(m.HeadDim)) }

// State implements [Model]. A layer has three states: its window and, if it compresses, what its next entries are made
// of, and the entries.
func (m *DeepseekV4) State() []LayerState {
	var list []LayerState
	dim, index := int64(m.HeadDim), int64(m.Index.Dim)
	for _, c := range m.Compression {
		list = append(list, LayerState{PerToken: dim, Window: int64(m.Window)})
		switch {
		case c.Overlap:
			list = append(list,
				LayerState{PerToken: 4 * (dim + index), Window: 2 * int64(c.Rate), Exact: true},
				LayerState{PerEntry: dim + index, Rate: int64(c.Rate)})
		case c.Rate > 0:
			list = append(list,
				LayerState{PerToken: 2 * dim, Window: int64(c.Rate), Exact: true},
				LayerState{PerEntry: dim, Rate: int64(c.Rate)})
		default:
			list = append(list, LayerState{}, LayerState{})
		}
	}
	return list
}

// Facts implements [Model].
func (m *DeepseekV4) Facts() Facts { return m.facts("deepseek_v4", m.CompressRope, m.Table()) }

// Rules implements [Model].
func (m *DeepseekV4) Rules() Rules {
	return genericRules(m.Layers,
		Rule{
			Name: "decides in float32", To: []Target{Source},
			Has: []string{"_hc.", ".hc_head.", ".position_bias", ".sinks", ".tid2eid", ".scorer.", "e_score_correction_bias"},
		},
		Rule{
			Name: "compressor", Of: Quantized, Has: []string{".compressor."}, Not: []string{".q_b_proj.weight"},
			To: []Target{Source},
		})
}
