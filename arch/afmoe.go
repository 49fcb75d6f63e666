package arch

import (
	"math"

	"github.com/ingotml/ingot/arch/decoder"
)

// Afmoe is the configuration of model type "afmoe" (Trinity): norms before and after attention and feed-forward block,
// gated attention with norms of queries and keys, sliding layers between full ones without rope, experts of a sigmoid
// router, shared experts and dense first layers. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Afmoe struct {
	Dense
	Mixture        Mixture
	EmbeddingScale float64 // of the embedding vectors
}

func init() {
	register(Arch{
		ModelType:     "afmoe",
		Plain:         true,
		Architectures: []string{"AfmoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseAfmoe(config) },
		GGUF:          []GGUF{ggufAfmoe},
		Docs: Docs{
			Variants: "gated attention, full layers without rope, shared experts, dense first layers, scaled embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseAfmoe parses the config.json of an afmoe model.
func ParseAfmoe(config []byte) (*Afmoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Afmoe{
		Dense: parseDecoder(top, o, commonDefaults{
			class: "AfmoeForCausalLM", dim: 128, ctx: 16384, eps: 1e-5,
		}, ropeOptions{}),
	}
	if o.boolean("mup_enabled", false) {
		m.EmbeddingScale = math.Sqrt(float64(m.Hidden))
	}
	m.Intermediate = o.integer("intermediate_size", 6144, 1, maxWidth)
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 64, perToken: 6, width: 1408}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = Router{Sigmoid: true, Correction: true, Scaling: o.above("route_scale", 1, 0)}
	x.Shared = o.integer("num_shared_experts", 2, 1, 64) * x.Experts.Intermediate
	x.parseDense(o, 1)
	if n := o.integer("n_group", 1, 1, maxExperts); n > 1 {
		o.fail("n_group", "be 1")
	}
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	every := o.integer("global_attn_every_n_layers", 4, 1, maxLayers)
	sliding := make([]bool, m.Layers)
	for i := range sliding {
		sliding[i] = (i+1)%every != 0
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		}
	}
	m.slide(o.integer("sliding_window", 1024, 1, maxContext), sliding)
	return parsed(m, o)
}

// Rotates reports whether a layer has a rope: the sliding ones.
func (m *Afmoe) Rotates(i int) bool { return m.Window > 0 && m.Sliding[i] }

// Facts implements [Model].
func (m *Afmoe) Facts() Facts { return m.facts("afmoe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Afmoe) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("afmoe", false, func(t *Table, layer string, i int) {
		t.norm(layer+"input_layernorm", hidden, false)
		m.attention(t, layer+"self_attn", m.queries(), false)
		t.linear(layer+"self_attn.gate_proj", m.queries(), hidden, false, queryRows(m.Heads, m.KVHeads))
		t.norm(layer+"post_attention_layernorm", hidden, false)
		t.norm(layer+"pre_mlp_layernorm", hidden, false)
		if m.Mixture.Sparse[i] {
			t.mixture(layer+"mlp", m.Mixture, m.Hidden)
		} else {
			m.mlp(t, layer+"mlp", m.Intermediate)
		}
		t.norm(layer+"post_mlp_layernorm", hidden, false)
	})
	t.also([]string{
		".mlp.gate.e_score_correction_bias", ".mlp.expert_bias", ".mlp.gate.weight", ".mlp.router.gate.weight",
	})
	t.stacksAsFused()
	return t
}

// Decoder implements [Described].
func (m *Afmoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norms: decoder.Norms{
			Mixer: "input_layernorm", MixerPost: "post_attention_layernorm",
			Network: "pre_mlp_layernorm", NetworkPost: "post_mlp_layernorm",
		},
		HeadNorms:      decoder.QK,
		RopeLayers:     m.slidingLayers(),
		Gate:           "gate_proj",
		EmbeddingScale: m.EmbeddingScale,
	}}
}
