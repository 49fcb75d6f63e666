package types

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Afmoe is the configuration of model type "afmoe" (Trinity): norms before and after attention and feed-forward block,
// gated attention with norms of queries and keys, sliding layers between full ones without rope, experts of a sigmoid
// router, shared experts and dense first layers. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Afmoe struct {
	config.Dense
	Mixture        config.Mixture
	EmbeddingScale float64 // of the embedding vectors
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "afmoe",
		Plain:         true,
		Architectures: []string{"AfmoeForCausalLM"},
		GGUF:          []gguf.Map{ggufAfmoe},
		Published: table.Published{
			Experts:     table.PerExpert,
			HuggingFace: afmoeNames,
			MLX:         slices.Concat(afmoeNames, table.ExpertsOfMLX),
		},
		Docs: arch.Docs{
			Variants: "gated attention, full layers without rope, shared experts, dense first layers, scaled embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseAfmoe)
}

// ParseAfmoe parses the config.json of an afmoe model.
func ParseAfmoe(data []byte) (*Afmoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Afmoe{
		Dense: config.ParseDecoder(top, o, config.Defaults{
			Class: "AfmoeForCausalLM", HeadDim: 128, Context: 16384, NormEps: 1e-5,
		}, config.RopeOptions{}),
	}
	if o.Bool("mup_enabled", false) {
		m.EmbeddingScale = math.Sqrt(float64(m.Hidden))
	}
	m.Intermediate = o.Integer("intermediate_size", 6144, 1, config.MaxWidth)
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 64, PerToken: 6, Width: 1408}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = config.Router{Sigmoid: true, Correction: true, Scaling: o.Above("route_scale", 1, 0)}
	x.Shared = o.Integer("num_shared_experts", 2, 1, 64) * x.Experts.Intermediate
	x.ReadDense(o, 1)
	if n := o.Integer("n_group", 1, 1, config.MaxExperts); n > 1 {
		o.Fail("n_group", "be 1")
	}
	kinds := o.Words("layer_types", m.Layers, config.FullAttention, config.SlidingAttention)
	every := o.Integer("global_attn_every_n_layers", 4, 1, config.MaxLayers)
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = (i+1)%every != 0
		if kinds != nil {
			sliding[i] = kinds[i] == config.SlidingAttention
		}
	}
	m.Slide(o.Integer("sliding_window", 1024, 1, config.MaxContext), sliding)
	return config.Done(m, o)
}

// Rotates reports whether a layer has a rope: the sliding ones.
func (m *Afmoe) Rotates(i int) bool { return m.Window > 0 && m.Sliding[i] }

func (m *Afmoe) Facts() config.Facts { return m.FactsAs("afmoe", m.Rope, m.Table()) }

func (m *Afmoe) Table() table.Table {
	t := m.Decoder().Table("afmoe")
	t.Also([]string{
		".mlp.gate.e_score_correction_bias", ".mlp.expert_bias", ".mlp.gate.weight", ".mlp.router.gate.weight",
	})
	t.StacksAsFused()
	return t
}

func (m *Afmoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norms: decoder.Norms{
			Mixer: "input_layernorm", MixerPost: "post_attention_layernorm",
			Network: "pre_mlp_layernorm", NetworkPost: "post_mlp_layernorm",
		},
		HeadNorms:      decoder.QK,
		RopeLayers:     m.SlidingLayers(),
		Gate:           "gate_proj",
		EmbeddingScale: m.EmbeddingScale,
	}}
}

// ggufAfmoe is the mapping of afmoe.
var ggufAfmoe = gguf.Map{
	Architecture: "afmoe",
	Config: map[string]any{
		"model_type": "afmoe", "architectures": []string{"AfmoeForCausalLM"}, "mup_enabled": true,
	},
	Keys: gguf.CountKeys("num_experts",
		gguf.Key{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		gguf.Key{Key: "expert_shared_count", To: "num_shared_experts", Optional: true},
		gguf.Key{Key: "expert_weights_scale", To: "route_scale", Field: "Router.Scaling", Optional: true},
		gguf.Key{Key: "leading_dense_block_count", To: "num_dense_layers", Optional: true},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.MoE, gguf.SharedExperts,
		gguf.HeadNorms,
		gguf.Names(gguf.Op{},
			"attn_gate.weight", "self_attn.gate_proj.weight", "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight", "ffn_norm.weight", "pre_mlp_layernorm.weight",
			"post_ffw_norm.weight", "post_mlp_layernorm.weight")),
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Afmoe); ok && !slices.Equal(q.Sliding, everyFull(q.Layers, 4)) {
			return "has a full layer, without rope, after every three sliding ones"
		}
		return ""
	},
	Adjust: func(c map[string]any, f gguf.File) error {
		gguf.SetSliding(c, "afmoe", f)
		return gguf.SetBiases(c, f)
	},
}

// everyFull returns which layers slide if every n-th is a full one.
func everyFull(layers, n int) []bool {
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = (i+1)%n != 0
	}
	return sliding
}

// afmoeNames are the published names of tensors, after those of the table.
var afmoeNames = []string{
	".mlp.gate.e_score_correction_bias", ".mlp.expert_bias", ".mlp.gate.weight", ".mlp.router.gate.weight",
}
