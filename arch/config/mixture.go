package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
)

// Router says how a layer chooses the experts of a token and weights their outputs. The zero value is a softmax over
// all experts, whose largest values are chosen. [Experts] says how many, and whether their weights sum to 1.
type Router struct {
	Sigmoid bool // the scores are sigmoids, not a softmax
	// SqrtSoftplus: the scores are sqrt(ln(1 + e^s)), not a softmax.
	SqrtSoftplus bool
	Correction   bool // a bias of each expert, added to the scores for the choice but not for the weights
	Float32      bool // computed in float32 whatever the type of activations
	Bias         bool
	Name         string // of its tensors; "" = gate
	// Groups divides the experts in order. Only those of the TopGroups best groups, by the sum of each group's GroupBest
	// best scores, can be chosen. 0 = one group, and the sum of two.
	Groups, TopGroups, GroupBest int
	Scaling                      float64 // of the weights; 0 = 1
	SoftCap                      float64 // the scores become SoftCap*tanh(score/SoftCap) first; 0 = they stay
	ScaleInput                   bool    // the weights, sigmoids of the largest scores, multiply the input of experts
	// SparseMixer chooses two experts, one after the other (https://arxiv.org/abs/2409.12136). The weight of each is its
	// share of the softmax over the scores that are at most 2*Jitter below its own, relative to the larger of both.
	SparseMixer bool
	Jitter      float64
}

// Named returns the name of the router's tensors.
func (r Router) Named() string {
	if r.Name == "" {
		return "gate"
	}
	return r.Name
}

// CorrectionName returns the name of the correction, which is beside the router's other tensors.
func (r Router) CorrectionName() string {
	group, _, nested := strings.Cut(r.Named(), ".")
	if !nested {
		group = "gate"
	}
	return group + ".e_score_correction_bias"
}

// Mixture is the feed-forward block of layers with experts.
type Mixture struct {
	Experts Experts
	Router  Router
	// Shared is the width of the experts that process every token, which are stored as one; 0 = none.
	Shared     int
	SharedGate bool // the output of the shared experts is multiplied by the sigmoid of a score
	SharedBias bool // biases of the shared experts
	// SharedScale multiplies the output of the shared experts; 0 = 1.
	SharedScale float64
	// Plain: experts, and the shared ones, have no gate: they square the positive part.
	Plain bool
	// Latent is the width that the experts' input is projected to, and their output from; 0 = they read the rows.
	Latent     int
	LatentBias bool
	Sparse     []bool // by layer: it has experts
}

// Width returns the width of the experts' input and output.
func (m Mixture) Width(hidden int) int {
	if m.Latent > 0 {
		return m.Latent
	}
	return hidden
}

// MixtureDefaults are the values of absent keys. A size with default 0 is required.
type MixtureDefaults struct {
	Count, PerToken, Width int
	SumToOne               bool
	Scaling                float64 // of sigmoid routers
	Shared                 int     // number of shared experts
	Groups, TopGroups      int     // of experts; 0 = 1
}

// ParseDecoder reads the keys that decoders share, without those of the feed-forward block.
func ParseDecoder(top, o Object, d Defaults, r RopeOptions) Dense {
	m := Dense{Common: ParseCommon(top, o, d), Activation: o.Activation("hidden_act", SiLU...)}
	r.HeadDim = m.HeadDim
	m.Rope = ParseRope(o, m.Context, r)
	if r.Partial == 0 {
		m.Rope.IgnorePartial(o)
	}
	return m
}

// FirstInteger returns the first of several keys for the same number.
func (o Object) FirstInteger(def, lo, hi int, keys ...string) int {
	for _, key := range keys {
		if o.Has(key) {
			return o.Integer(key, def, lo, hi)
		}
	}
	return def
}

// expertKeys are the published names of the number of experts. transformers 5 treats them as synonyms.
var expertKeys = []string{"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}

// ReadExperts reads the number and the width of the experts of all layers. width names the key of the width.
func (m *Mixture) ReadExperts(o Object, c Common, d MixtureDefaults, width string) {
	m.Experts = Experts{
		Count:        o.FirstInteger(d.Count, 1, MaxExperts, expertKeys...),
		PerToken:     o.FirstInteger(d.PerToken, 1, MaxExperts, "num_experts_per_tok", "moe_k", "moe_topk"),
		Intermediate: o.Integer(width, d.Width, 1, MaxWidth/64),
		NormTopK:     o.Bool("norm_topk_prob", d.SumToOne),
	}
	key := expertKeys[max(0, slices.IndexFunc(expertKeys, o.Has))]
	if m.Experts.Count == 0 {
		o.Missing(key)
	}
	if m.Experts.PerToken == 0 {
		o.Missing("num_experts_per_tok")
	}
	if m.Experts.Intermediate == 0 {
		o.Missing(width)
	}
	if o.Failed() == nil {
		o.CheckExperts(key, m.Experts, c.Hidden)
	}
	m.Sparse = make([]bool, c.Layers)
	for i := range m.Sparse {
		m.Sparse[i] = true
	}
}

// ReadGrouped reads the keys of DeepSeek's router, which many models have: sigmoids with a correction, groups and a
// scale, and shared experts.
func (m *Mixture) ReadGrouped(o Object, c Common, d MixtureDefaults) {
	m.ReadExperts(o, c, d, "moe_intermediate_size")
	m.Router = Router{
		Sigmoid: true, Correction: true, Float32: true,
		Groups:    o.Integer("n_group", orDefault(d.Groups, 1), 1, MaxExperts),
		TopGroups: o.Integer("topk_group", orDefault(d.TopGroups, 1), 1, MaxExperts),
		Scaling:   o.Above("routed_scaling_factor", orDefault(d.Scaling, 1), 0),
	}
	m.Shared = o.FirstInteger(d.Shared, 0, 64, "n_shared_experts", "num_shared_experts") * m.Experts.Intermediate
	if method := o.String("topk_method", "noaux_tc"); method != "noaux_tc" {
		o.Fail("topk_method", `be "noaux_tc"`)
	}
	// dots.llm1 publishes the name of the method here, too.
	if f := o.String("scoring_func", "sigmoid"); f != "sigmoid" && f != "noaux_tc" {
		o.Fail("scoring_func", `be "sigmoid"`)
	}
	m.Router.Check(o, m.Experts)
}

// Check reports groups that do not divide the experts, or have too few for a token.
func (r Router) Check(o Object, e Experts) {
	each := e.Count / r.Groups
	switch {
	case o.Failed() != nil:
	case e.Count%r.Groups != 0 || r.Groups > 1 && each < 2:
		o.Fail("n_group", fmt.Sprintf("divide the %d experts into groups of two or more", e.Count))
	case r.TopGroups > r.Groups:
		o.Fail("topk_group", fmt.Sprintf("be <= n_group = %d", r.Groups))
	case e.PerToken > r.TopGroups*each:
		o.Fail("num_experts_per_tok", fmt.Sprintf("be <= %d, the experts of the chosen groups", r.TopGroups*each))
	}
}

// ReadDense reads which layers have no experts: the first few, or those of a list.
func (m *Mixture) ReadDense(o Object, def int) {
	kinds := o.Words("mlp_layer_types", len(m.Sparse), "dense", "sparse")
	dense := o.FirstInteger(def, 0, MaxLayers, "first_k_dense_replace", "num_dense_layers")
	for i := range m.Sparse {
		m.Sparse[i] = i >= dense
		if kinds != nil {
			m.Sparse[i] = kinds[i] == "sparse"
		}
	}
}

// AddTo adds the feed-forward block of a layer with experts.
func (m Mixture) AddTo(t *table.Table, name string, hidden int) {
	h, n := int64(hidden), int64(m.Experts.Count+m.Experts.Identity)
	t.Linear(name+"."+m.Router.Named(), n, h, m.Router.Bias, table.Whole)
	if m.Router.Correction {
		t.Add(name+"."+m.Router.CorrectionName(), table.Whole, n)
	}
	if m.Plain {
		m.addPlain(t, name, hidden)
		return
	}
	if m.Experts.Bias {
		m.Experts.addBiased(t, name+".experts", hidden)
	} else {
		m.Experts.AddTo(t, name+".experts", name+".switch_mlp", hidden)
	}
	if m.Shared == 0 {
		return
	}
	shared, wide := name+".shared_experts", int64(m.Shared)
	if m.SharedGate {
		shared = name + ".shared_expert"
	}
	t.Linear(shared+".gate_proj", wide, h, m.SharedBias, table.Outputs)
	t.Linear(shared+".up_proj", wide, h, m.SharedBias, table.Outputs)
	t.Linear(shared+".down_proj", h, wide, m.SharedBias, table.Inputs)
	if m.SharedGate {
		t.Add(shared+"_gate.weight", table.Whole, 1, h)
	}
}

// addPlain adds experts without a gate, with their latent projections and shared experts.
func (m Mixture) addPlain(t *table.Table, name string, hidden int) {
	h, in, n, width := int64(hidden), int64(m.Width(hidden)), int64(m.Experts.Count), int64(m.Experts.Intermediate)
	if m.Latent > 0 {
		t.Linear(name+".fc1_latent_proj", in, h, m.LatentBias, table.Whole)
		t.Linear(name+".fc2_latent_proj", h, in, m.LatentBias, table.Whole)
	}
	for _, part := range []struct {
		name, switched string // here, and in mlx-lm
		out, size      int64
	}{{"up_proj", "fc1", width, in}, {"down_proj", "fc2", in, width}} {
		s := t.Add(name+".experts."+part.name, table.EachExpert, n, part.out, part.size)
		s.Aliases = []string{name + ".experts." + part.name + ".weight"}
		s.Layout, s.Group = table.Fused, name+".experts"
		s.Forms = []table.Form{
			{
				Layout: table.Stacked, Make: table.Copy, Count: 1,
				Names:  []string{name + ".switch_mlp." + part.switched + ".weight"},
				Shapes: [][]int64{{n, part.out, part.size}},
			},
			{
				Layout: table.PerExpert, Make: table.Stack, Count: n,
				Names: []string{name + ".experts.*." + part.name + ".weight"}, Shapes: [][]int64{{part.out, part.size}},
			},
		}
	}
	t.Linear(name+".shared_experts.up_proj", int64(m.Shared), h, m.SharedBias, table.Outputs)
	t.Linear(name+".shared_experts.down_proj", h, int64(m.Shared), m.SharedBias, table.Inputs)
}
