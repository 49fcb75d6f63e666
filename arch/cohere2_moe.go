package arch

import "github.com/ingotml/ingot/arch/decoder"

// Cohere2Moe is the configuration of model type "cohere2_moe": [Cohere2] with experts in some or all layers. Absent
// keys have the defaults of transformers 5.23; sizes are required.
type Cohere2Moe struct {
	Dense
	Mixture    Mixture
	LogitScale float64
	RMSNorms   bool   // norms are RMSNorms, not LayerNorms without bias
	Rotates    []bool // by layer: queries and keys are rotated
}

func init() {
	register(Arch{
		ModelType:     "cohere2_moe",
		Plain:         true,
		Architectures: []string{"Cohere2MoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseCohere2Moe(config) },
		GGUF:          []GGUF{ggufCohere2Moe},
		Docs: Docs{
			Variants: "softmax or sigmoid router, shared experts summed or averaged, dense first layers, both kinds of norms",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseCohere2Moe parses the config.json of a cohere2_moe model.
func ParseCohere2Moe(config []byte) (*Cohere2Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Cohere2Moe{
		Dense: parseDecoder(top, o, commonDefaults{
			class: "Cohere2MoeForCausalLM", dim: 128, ctx: 8192, eps: 1e-5, tied: true, bos: []int32{5}, eos: []int32{255001},
		}, ropeOptions{}),
		LogitScale: o.above("logit_scale", 0.0625, 0),
		RMSNorms:   o.has("rms_norm_eps"),
	}
	if !m.RMSNorms {
		m.NormEps = o.above("layer_norm_eps", 1e-5, 0)
	}
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 8, perToken: 2, sumToOne: true}, "intermediate_size")
	x.parseDense(o, 0)
	m.Intermediate = o.integer("prefix_dense_intermediate_size", x.Experts.Intermediate, 1, maxWidth)
	switch f := o.str("expert_selection_fn", "softmax"); f {
	case "sigmoid":
		x.Router.Sigmoid = true
	case "softmax":
		x.Experts.NormTopK = true
	default:
		o.fail("expert_selection_fn", `be "softmax" or "sigmoid"`)
	}
	x.Shared = o.integer("num_shared_experts", 0, 0, 64) * x.Experts.Intermediate
	switch s := o.str("shared_expert_combination_strategy", "average"); s {
	case "average":
		if x.Shared > 0 {
			x.Router.Scaling, x.SharedScale = 0.5, 0.5
		}
	case "sum":
	default:
		o.fail("shared_expert_combination_strategy", `be "average" or "sum"`)
	}
	m.layers(o)
	return parsed(m, o)
}

// layers reads which layers slide and which have a rope: sliding ones and, unless they have a pattern of their own, the
// dense ones.
func (m *Cohere2Moe) layers(o object) {
	first := o.integer("prefix_dense_sliding_window_pattern", 1, 1, maxLayers)
	every := o.integer("sliding_window_pattern", 4, 1, maxLayers)
	dense := min(o.integer("first_k_dense_replace", 0, 0, maxLayers), m.Layers)
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	window := o.window("sliding_window", 4096)
	sliding := make([]bool, m.Layers)
	m.Rotates = make([]bool, m.Layers)
	for i := range sliding {
		switch {
		case kinds != nil:
			sliding[i] = kinds[i] == slidingAttention
		case i < dense:
			sliding[i] = (i+1)%first != 0
		default:
			sliding[i] = (i-dense+1)%every != 0
		}
		m.Rotates[i] = sliding[i] && window > 0 || !m.Mixture.Sparse[i] && first == 1
	}
	m.slide(window, sliding)
}

// Facts implements [Model].
func (m *Cohere2Moe) Facts() Facts { return m.facts("cohere2_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Cohere2Moe) Table() Table {
	return m.decoder("cohere2_moe", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", int64(m.Hidden), false)
		m.projections(t, layer+"self_attn", m.queries())
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"mlp", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"mlp", m.Intermediate)
		}
	})
}

// Decoder implements [Described].
func (m *Cohere2Moe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norm:        decoder.Norm{LayerNorm: !m.RMSNorms},
		Norms:       decoder.BeforeShared,
		Parallel:    true,
		Interleaved: true,
		RopeLayers:  m.Rotates,
		LogitScale:  m.LogitScale,
	}}
}
