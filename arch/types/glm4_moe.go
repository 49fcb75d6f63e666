package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Glm4Moe is the configuration of model type "glm4_moe" (GLM-4.5 to 4.7): a pre-norm decoder whose rope rotates a part
// of each head, with experts of a sigmoid router, shared experts and dense first layers. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Glm4Moe struct {
	config.Dense
	Mixture   config.Mixture
	HeadNorms bool // norms of queries and keys per head
	// NextLayers is the number of multi-token prediction heads, numbered after the layers.
	NextLayers int
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "glm4_moe",
		Architectures: []string{"Glm4MoeForCausalLM"},
		GGUF:          []gguf.Map{ggufGlm4Moe},
		Published:     table.Published{Experts: table.PerExpert},
		Docs: arch.Docs{
			Variants: "groups of experts, shared experts, dense first layers, norms of queries and keys, biases",
			Rules:    "generic, also for experts",
			Draft:    nextDraftDoc,
		},
	}, ParseGlm4Moe)
}

// ParseGlm4Moe parses the config.json of a glm4_moe model.
func ParseGlm4Moe(data []byte) (*Glm4Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Glm4Moe{
		Dense: config.ParseDecoder(top, o, config.Defaults{Class: "Glm4MoeForCausalLM", KVHeads: 8, Context: 1 << 17,
			NormEps: 1e-5},
			config.RopeOptions{Partial: 0.5}),
		HeadNorms:  o.Bool("use_qk_norm", false),
		NextLayers: o.FirstInteger(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers"),
	}
	m.OutputBias = false
	m.Intermediate = o.Integer("intermediate_size", 10944, 1, config.MaxWidth)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{Count: 128, PerToken: 8, Width: 1408, SumToOne: true,
		Shared: 1})
	m.Mixture.ReadDense(o, 1)
	return config.Done(m, o)
}

func (m *Glm4Moe) Facts() config.Facts { return m.FactsAs("glm4_moe", m.Rope, m.Table()) }

func (m *Glm4Moe) Table() table.Table {
	t := m.Decoder().Table("glm4_moe")
	if !m.HasNext() {
		m.DropNext(&t, m.NextLayers)
		return t
	}
	m.AddNext(&t, func(t *table.Table, layer string) { m.Decoder().AddLayer(t, layer, true) })
	return t
}

// Decoder implements [arch.Described].
func (m *Glm4Moe) Decoder() config.Decoder {
	d := config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture}
	if m.HeadNorms {
		d.HeadNorms = decoder.QK
	}
	return d
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. No published checkpoint has more
// than one.
func (m *Glm4Moe) HasNext() bool { return m.NextLayers == 1 }

// Next returns the name prefix of the multi-token prediction head.
func (m *Glm4Moe) Next() string { return m.NextName() }

// ggufGlm4Moe is the mapping of glm4_moe. Models of solar_open, which compute the same, have it too.
var ggufGlm4Moe = gguf.Map{
	Architecture: "glm4moe",
	Config: map[string]any{
		"model_type": "glm4_moe", "architectures": []string{"Glm4MoeForCausalLM"}, "num_nextn_predict_layers": 0,
	},
	Keys: gguf.GroupedKeys("n_routed_experts", "n_shared_experts"),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.MoE, gguf.SharedExperts,
		gguf.HeadNorms,
		gguf.Names(gguf.Op{}, "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight")),
	Next: []gguf.Tensor{{
		Name: "blk.*" + gguf.AnyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust: func(c map[string]any, f gguf.File) error {
		const architecture = "glm4moe"
		_, c["use_qk_norm"] = f.Shape("blk.0.attn_q_norm.weight")
		if err := gguf.SetPartial(c, architecture, f); err != nil {
			return err
		}
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		if err := gguf.DropNext(c, architecture, f); err != nil {
			return err
		}
		return gguf.SetSparse(c, f)
	},
}
