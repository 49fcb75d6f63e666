package arch

import (
	"fmt"
	"slices"
	"strings"
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

// mixtureDefaults are the values of absent keys. A size with default 0 is required.
type mixtureDefaults struct {
	count, perToken, width int
	sumToOne               bool
	scaling                float64 // of sigmoid routers
	shared                 int     // number of shared experts
	groups, topGroups      int     // of experts; 0 = 1
}

// parseDecoder reads the keys that decoders share, without those of the feed-forward block.
func parseDecoder(top, o object, d commonDefaults, r ropeOptions) Dense {
	m := Dense{Common: parseCommon(top, o, d), Activation: o.activation("hidden_act", silu...)}
	r.headDim = m.HeadDim
	m.Rope = parseRope(o, m.Context, r)
	if r.partial == 0 {
		m.Rope.ignorePartial(o)
	}
	return m
}

// integerOf returns the first of several keys for the same number.
func (o object) integerOf(def, lo, hi int, keys ...string) int {
	for _, key := range keys {
		if o.has(key) {
			return o.integer(key, def, lo, hi)
		}
	}
	return def
}

// expertKeys are the published names of the number of experts. transformers 5 treats them as synonyms.
var expertKeys = []string{"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}

// parseExperts reads the number and the width of the experts of all layers. width names the key of the width.
func (m *Mixture) parseExperts(o object, c Common, d mixtureDefaults, width string) {
	m.Experts = Experts{
		Count:        o.integerOf(d.count, 1, maxExperts, expertKeys...),
		PerToken:     o.integerOf(d.perToken, 1, maxExperts, "num_experts_per_tok", "moe_k", "moe_topk"),
		Intermediate: o.integer(width, d.width, 1, maxWidth/64),
		NormTopK:     o.boolean("norm_topk_prob", d.sumToOne),
	}
	key := expertKeys[max(0, slices.IndexFunc(expertKeys, o.has))]
	if m.Experts.Count == 0 {
		o.missing(key)
	}
	if m.Experts.PerToken == 0 {
		o.missing("num_experts_per_tok")
	}
	if m.Experts.Intermediate == 0 {
		o.missing(width)
	}
	if o.failed() == nil {
		o.checkExperts(key, m.Experts, c.Hidden)
	}
	m.Sparse = make([]bool, c.Layers)
	for i := range m.Sparse {
		m.Sparse[i] = true
	}
}

// parseGrouped reads the keys of DeepSeek's router, which many models have: sigmoids with a correction, groups and a
// scale, and shared experts.
func (m *Mixture) parseGrouped(o object, c Common, d mixtureDefaults) {
	m.parseExperts(o, c, d, "moe_intermediate_size")
	m.Router = Router{
		Sigmoid: true, Correction: true, Float32: true,
		Groups:    o.integer("n_group", orDefault(d.groups, 1), 1, maxExperts),
		TopGroups: o.integer("topk_group", orDefault(d.topGroups, 1), 1, maxExperts),
		Scaling:   o.above("routed_scaling_factor", orDefault(d.scaling, 1), 0),
	}
	m.Shared = o.integerOf(d.shared, 0, 64, "n_shared_experts", "num_shared_experts") * m.Experts.Intermediate
	if method := o.str("topk_method", "noaux_tc"); method != "noaux_tc" {
		o.fail("topk_method", `be "noaux_tc"`)
	}
	// dots.llm1 publishes the name of the method here, too.
	if f := o.str("scoring_func", "sigmoid"); f != "sigmoid" && f != "noaux_tc" {
		o.fail("scoring_func", `be "sigmoid"`)
	}
	m.Router.check(o, m.Experts)
}

// check reports groups that do not divide the experts, or have too few for a token.
func (r Router) check(o object, e Experts) {
	each := e.Count / r.Groups
	switch {
	case o.failed() != nil:
	case e.Count%r.Groups != 0 || r.Groups > 1 && each < 2:
		o.fail("n_group", fmt.Sprintf("divide the %d experts into groups of two or more", e.Count))
	case r.TopGroups > r.Groups:
		o.fail("topk_group", fmt.Sprintf("be <= n_group = %d", r.Groups))
	case e.PerToken > r.TopGroups*each:
		o.fail("num_experts_per_tok", fmt.Sprintf("be <= %d, the experts of the chosen groups", r.TopGroups*each))
	}
}

// parseDense reads which layers have no experts: the first few, or those of a list.
func (m *Mixture) parseDense(o object, def int) {
	kinds := o.kinds("mlp_layer_types", len(m.Sparse), "dense", "sparse")
	dense := o.integerOf(def, 0, maxLayers, "first_k_dense_replace", "num_dense_layers")
	for i := range m.Sparse {
		m.Sparse[i] = i >= dense
		if kinds != nil {
			m.Sparse[i] = kinds[i] == "sparse"
		}
	}
}

// mixture adds the feed-forward block of a layer with experts.
func (t *Table) mixture(name string, m Mixture, hidden int) {
	h, n := int64(hidden), int64(m.Experts.Count+m.Experts.Identity)
	t.linear(name+"."+m.Router.Named(), n, h, m.Router.Bias, replicated)
	if m.Router.Correction {
		t.add(name+"."+m.Router.CorrectionName(), replicated, n)
	}
	if m.Plain {
		t.plainExperts(name, m, hidden)
		return
	}
	if m.Experts.Bias {
		t.biasedExperts(name+".experts", m.Experts, hidden)
	} else {
		t.experts(name+".experts", name+".switch_mlp", m.Experts, hidden)
	}
	if m.Shared == 0 {
		return
	}
	shared, wide := name+".shared_experts", int64(m.Shared)
	if m.SharedGate {
		shared = name + ".shared_expert"
	}
	t.linear(shared+".gate_proj", wide, h, m.SharedBias, column)
	t.linear(shared+".up_proj", wide, h, m.SharedBias, column)
	t.linear(shared+".down_proj", h, wide, m.SharedBias, row)
	if m.SharedGate {
		t.add(shared+"_gate.weight", replicated, 1, h)
	}
}

// plainExperts adds experts without a gate, with their latent projections and shared experts.
func (t *Table) plainExperts(name string, m Mixture, hidden int) {
	h, in, n, width := int64(hidden), int64(m.Width(hidden)), int64(m.Experts.Count), int64(m.Experts.Intermediate)
	if m.Latent > 0 {
		t.linear(name+".fc1_latent_proj", in, h, m.LatentBias, replicated)
		t.linear(name+".fc2_latent_proj", h, in, m.LatentBias, replicated)
	}
	for _, part := range []struct {
		name, switched string // here, and in mlx-lm
		out, size      int64
	}{{"up_proj", "fc1", width, in}, {"down_proj", "fc2", in, width}} {
		s := t.add(name+".experts."+part.name, byExpert, n, part.out, part.size)
		s.Aliases = []string{name + ".experts." + part.name + ".weight"}
		s.Layout, s.Group = fused, name+".experts"
		s.Forms = []Form{
			{
				Layout: stacked, Make: Copy, Count: 1,
				Names:  []string{name + ".switch_mlp." + part.switched + ".weight"},
				Shapes: [][]int64{{n, part.out, part.size}},
			},
			{
				Layout: perExpert, Make: Stack, Count: n,
				Names: []string{name + ".experts.*." + part.name + ".weight"}, Shapes: [][]int64{{part.out, part.size}},
			},
		}
	}
	t.linear(name+".shared_experts.up_proj", int64(m.Shared), h, m.SharedBias, column)
	t.linear(name+".shared_experts.down_proj", h, int64(m.Shared), m.SharedBias, row)
}

// also states that other checkpoints have the tensors of the table under names in which, of each list of pairs, all
// occurrences of a first part are replaced by the second.
func (t *Table) also(lists ...[]string) {
	for i := range t.Specs {
		s := &t.Specs[i]
		forms := len(s.Forms)
		for _, pairs := range lists {
			r := strings.NewReplacer(pairs...)
			if name := r.Replace(s.Name); name != s.Name {
				s.Aliases = append(s.Aliases, name)
			}
			for _, f := range s.Forms[:forms] {
				names := make([]string, len(f.Names))
				for j, name := range f.Names {
					names[j] = r.Replace(name)
				}
				if !slices.Equal(names, f.Names) {
					f.Names = names
					s.Forms = append(s.Forms, f)
				}
			}
		}
	}
}

// decodes makes the table of a decoder whose layers have a norm before attention and one before the feed-forward block,
// which is a mixture in some or all layers. attend adds the norms of queries and keys, if there are any.
func (m *Dense) decodes(modelType string, x Mixture, attend func(t *Table, name string)) Table {
	return m.decoder(modelType, false, func(t *Table, layer string, i int) {
		m.decoderLayer(t, layer, x, x.Sparse[i], attend)
	})
}

// decoderLayer adds a layer of decodes, with experts if it is sparse.
func (m *Dense) decoderLayer(t *Table, layer string, x Mixture, sparse bool, attend func(t *Table, name string)) {
	hidden := int64(m.Hidden)
	t.norm(layer+"input_layernorm", hidden, false)
	m.projections(t, layer+"self_attn", m.queries())
	if attend != nil {
		attend(t, layer+"self_attn")
	}
	t.norm(layer+"post_attention_layernorm", hidden, false)
	if sparse {
		t.mixture(layer+"mlp", x, m.Hidden)
	} else {
		m.mlp(t, layer+"mlp", m.Intermediate)
	}
}

// headNorms adds norms of queries and keys per head.
func (m *Dense) headNorms(t *Table, name string) {
	t.norm(name+".q_norm", int64(m.HeadDim), false)
	t.norm(name+".k_norm", int64(m.HeadDim), false)
}

// blockSparse are the names that Mixtral's publishers gave to experts, and those of mlx-lm for them.
var blockSparse = [][]string{
	{".mlp.", ".block_sparse_moe."},
	{".mlp.", ".block_sparse_moe.", ".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2."},
}
