package types

import (
	"fmt"
	"maps"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
)

// DeepseekV4 is the configuration of model type "deepseek_v4": one KV head whose key is its value, a window of
// positions and, in most layers, compressed ones before it; residual streams that are mixed by hyper-connections; and
// experts in every layer. Absent keys have the defaults of transformers 5.23; sizes are required. Rope is of layers
// without compression, Window of all layers.
type DeepseekV4 struct {
	config.Dense
	RopeDim      int // rotated channels, the last of a head
	CompressRope config.Rope
	Compression  []Compression // by layer
	QueryRank    int
	OutGroups    int // groups of heads, each with a projection to OutRank channels of its own
	OutRank      int
	Index        config.Index // its budget counts entries
	Streams      HyperStreams
	Mixture      config.Mixture
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
	arch.Register(arch.Arch{
		ModelType:     "deepseek_v4",
		Aliases:       []string{deepseekRef},
		Architectures: []string{"DeepseekV4ForCausalLM"},
		Names:         []string{"moe_intermediate_size", "intermediate_size"},
		Chat: &arch.Chat{
			Marks: []string{"deepseekv4", "deepseek_v4"}, Parser: "deepseek4", Renderer: "deepseek3", Thinks: true,
		},
		Idle: []arch.Idle{
			{Why: "the tensors say it by their names and shapes", Keys: []string{"mlp_bias"}},
			{Why: "another key of the type says it", Keys: []string{"qk_nope_head_dim"}},
		},
		Fixed: []arch.Fixed{
			{Key: "rope_interleave", Values: []string{"true"}},
		},
		Docs: arch.Docs{
			Variants: "compressed and sliding layers, hyper-connections, experts chosen by scores or by token; published names",
			Rules:    "generic, also for experts; compressors, weights of index heads and hyper-connections keep their type",
		},
	}, ParseDeepseekV4)
}

// ParseDeepseekV4 parses the config.json of a deepseek_v4 model.
func ParseDeepseekV4(data []byte) (*DeepseekV4, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV4{Dense: config.Dense{Common: config.ParseCommon(top, o, config.Defaults{
		Class: "DeepseekV4ForCausalLM", KVHeads: 1, HeadDim: 512, Context: 1 << 20, NormEps: 1e-6, BOS: []int32{0},
		EOS: []int32{1},
	}), Activation: o.Activation("hidden_act", config.SiLU...)}}
	if m.KVHeads != 1 {
		o.Fail("num_key_value_heads", "be 1")
	}
	if m.AttentionBias {
		o.Fail("attention_bias", "be false")
	}
	m.QueryRank = o.Integer("q_lora_rank", 1024, 1, config.MaxWidth)
	m.OutGroups, m.OutRank = o.Integer("o_groups", 8, 1, config.MaxHeads), o.Integer("o_lora_rank", 1024, 1,
		config.MaxWidth)
	if m.Heads%m.OutGroups != 0 {
		o.Fail("o_groups", fmt.Sprintf("divide num_attention_heads = %d", m.Heads))
	}
	m.Streams = HyperStreams{
		Count:      o.Integer("hc_mult", 4, 1, 64),
		Iterations: o.Integer("hc_sinkhorn_iters", 20, 1, 1000),
		Eps:        o.AtLeast("hc_eps", 1e-6, 0),
	}
	m.SlideEverywhere(o.Integer("sliding_window", 128, 1, config.MaxContext))
	m.compression(o)
	m.ropes(o)
	m.parseIndex(o)
	m.experts(o)
	return config.Done(m, o)
}

// compression reads which layers compress: a list of types with rates for each, or the publisher's list of rates.
func (m *DeepseekV4) compression(o config.Object) {
	rates := map[string]int{compressedSparse: 4, heavilyCompressed: 128}
	in, _ := o.Object("compress_rates")
	for kind, old := range map[string]string{
		compressedSparse: "compress_rate_csa", heavilyCompressed: "compress_rate_hca",
	} {
		if in.Keys != nil {
			rates[kind] = in.Integer(kind, rates[kind], 1, config.MaxContext)
		}
		rates[kind] = o.Integer(old, rates[kind], 1, config.MaxContext)
	}
	kinds := o.Words("layer_types", m.Layers, config.SlidingAttention, compressedSparse, heavilyCompressed)
	list := o.Integers("compress_ratios", config.MaxLayers+16, 0, config.MaxContext)
	if kinds == nil && list != nil && len(list) < m.Layers {
		o.Fail("compress_ratios", fmt.Sprintf("have %d elements, one per layer (it has %d)", m.Layers, len(list)))
		return
	}
	m.Compression = make([]Compression, m.Layers)
	for i := range m.Compression {
		kind := heavilyCompressed
		switch {
		case kinds != nil:
			kind = kinds[i]
		case list != nil && list[i] == 0:
			kind = config.SlidingAttention
		case list != nil && list[i] == 4 || list == nil && i > 2 && i%2 == 1:
			kind = compressedSparse
		case list != nil && list[i] != 128:
			o.Fail("compress_ratios", "hold 0, 4 and 128 only")
		}
		m.Compression[i] = Compression{Rate: rates[kind], Overlap: kind == compressedSparse}
	}
}

// ropes reads the ropes of layers with and without compression: parameters for each, or the publisher's keys, of which
// rope_scaling is for layers with compression.
func (m *DeepseekV4) ropes(o config.Object) {
	part := 64.0 / 512
	if o.Has("qk_rope_head_dim") {
		part = float64(o.Integer("qk_rope_head_dim", 64, 2, m.HeadDim)) / float64(m.HeadDim)
	}
	part = o.Number("partial_rotary_factor", part, config.IsShare, "be > 0 and <= 1")
	m.RopeDim = int(float64(m.HeadDim) * part)
	if m.RopeDim < 2 || m.RopeDim%2 != 0 {
		o.Fail("head_dim", fmt.Sprintf("give an even number of rotated channels (it is %d)", m.RopeDim))
	}
	types := config.RopeOptions{Types: []config.RopeType{config.RopeDefault, config.RopeLinear, config.RopeYarn},
		HeadDim: m.RopeDim}
	theta := o.Theta("rope_theta", config.DefaultTheta)
	compress := o.Theta("compress_rope_theta", 160000)
	m.Rope = config.Rope{Type: config.RopeDefault, Theta: theta}
	in, given := o.Object("rope_scaling")
	if !given {
		in, given = o.Object("rope_parameters")
	}
	if own, nested := in.Object("main"); given && nested {
		m.Rope = config.ReadRope(o, own, theta, 1, m.Context, types)
		in, given = in.Object("compress")
		if !given {
			o.Fail("rope_parameters", "hold parameters for main and compress")
		}
	} else if given {
		in.Keys = maps.Clone(in.Keys)
		delete(in.Keys, "rope_theta") // of the others
	}
	if m.CompressRope = (config.Rope{Type: config.RopeDefault, Theta: compress}); given {
		m.CompressRope = config.ReadRope(o, in, compress, 1, m.Context, types)
	}
	for _, r := range []*config.Rope{&m.Rope, &m.CompressRope} {
		r.PartialFactor = 1
		if r.Type == config.RopeYarn && r.AttentionFactor == 0 {
			r.AttentionFactor = 1
		}
	}
}

// parseIndex reads the keys of indexers.
func (m *DeepseekV4) parseIndex(o config.Object) {
	m.Index = config.Index{
		Heads:  o.Integer("index_n_heads", 64, 1, config.MaxHeads),
		Dim:    o.Integer("index_head_dim", 128, 1, config.MaxHeadDim),
		Budget: o.Integer("index_topk", 512, 1, config.MaxContext),
	}
	if m.Index.Dim < m.RopeDim || m.Index.Dim%4 != 0 {
		o.Fail("index_head_dim", fmt.Sprintf("be a multiple of 4 and at least %d, the rotated channels", m.RopeDim))
	}
}

// experts reads the keys of experts.
func (m *DeepseekV4) experts(o config.Object) {
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 256, PerToken: 6, Width: 2048, SumToOne: true},
		"moe_intermediate_size")
	x.Experts.Clamp = config.Clamp{Limit: o.Above("swiglu_limit", 10, 0)}
	x.Shared = x.Experts.Intermediate
	x.Router = config.Router{
		Float32: true, Correction: true, SqrtSoftplus: true, Scaling: v4Scaling(o, x.Experts.Count),
	}
	switch {
	case !x.Experts.NormTopK:
		o.Fail("norm_topk_prob", "be true")
	case o.Integer("n_shared_experts", 1, 0, 64) != 1:
		o.Fail("n_shared_experts", "be 1")
	case o.String("scoring_func", "sqrtsoftplus") != "sqrtsoftplus":
		o.Fail("scoring_func", `be "sqrtsoftplus"`)
	case o.String("topk_method", "noaux_tc") != "noaux_tc":
		o.Fail("topk_method", `be "noaux_tc"`)
	case m.MLPBias:
		o.Fail("mlp_bias", "be false")
	}
	kinds := o.Words("mlp_layer_types", m.Layers, "hash_moe", "moe")
	hashed := o.Integer("num_hash_layers", 3, 0, config.MaxLayers)
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
func v4Scaling(o config.Object, experts int) float64 {
	const key = "routed_scaling_factor"
	def := 1.5
	if o.String("model_type", "") == deepseekRef && !o.Has(key) {
		var published bool
		if def, published = map[int]float64{256: 1.5, 384: 2.5}[experts]; !published {
			o.Missing(key)
			return 1
		}
	}
	return o.Above(key, def, 0)
}

// AttentionScale returns the factor of the attention scores.
func (m *DeepseekV4) AttentionScale() float64 { return 1 / math.Sqrt(float64(m.HeadDim)) }

// State implements [arch.Model]. A layer has three states: its window and, if it compresses, what its next entries are
// made of, and the entries.
func (m *DeepseekV4) State() []config.LayerState {
	var list []config.LayerState
	dim, index := int64(m.HeadDim), int64(m.Index.Dim)
	for _, c := range m.Compression {
		list = append(list, config.LayerState{PerToken: dim, Window: int64(m.Window)})
		switch {
		case c.Overlap:
			list = append(list,
				config.LayerState{PerToken: 4 * (dim + index), Window: 2 * int64(c.Rate), Exact: true},
				config.LayerState{PerEntry: dim + index, Rate: int64(c.Rate)})
		case c.Rate > 0:
			list = append(list,
				config.LayerState{PerToken: 2 * dim, Window: int64(c.Rate), Exact: true},
				config.LayerState{PerEntry: dim, Rate: int64(c.Rate)})
		default:
			list = append(list, config.LayerState{}, config.LayerState{})
		}
	}
	return list
}

func (m *DeepseekV4) Facts() config.Facts { return m.FactsAs("deepseek_v4", m.CompressRope, m.Table()) }

func (m *DeepseekV4) Rules() precision.Rules {
	return precision.Generic(m.Layers,
		precision.Rule{
			Name: "decides in float32", To: []precision.Target{precision.Source},
			Has: []string{"_hc.", ".hc_head.", ".position_bias", ".sinks", ".tid2eid", ".scorer.", "e_score_correction_bias"},
		},
		precision.Rule{
			Name: "compressor", Of: precision.Quantized, Has: []string{".compressor."}, Not: []string{".q_b_proj.weight"},
			To: []precision.Target{precision.Source},
		})
}

func (m *DeepseekV4) Carried(int) int64 { return int64(m.Streams.Count) * int64(m.Hidden) }
