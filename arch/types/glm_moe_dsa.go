package types

import (
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// GlmMoeDsa is the configuration of model type "glm_moe_dsa" (GLM-5): latent attention that is sparse, in some layers
// with the choice of an earlier indexer, and experts of a sigmoid router. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type GlmMoeDsa struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "glm_moe_dsa",
		Latent:        true,
		Architectures: []string{"GlmMoeDsaForCausalLM"},
		Names:         []string{"n_routed_experts", "num_experts"},
		GGUF:          []gguf.Map{ggufGlmDsa},
		Published:     table.Published{Experts: table.PerExpert},
		Wide:          true,
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Fixed: []arch.Fixed{
			{Key: "moe_layer_freq", Values: []string{"1"}},
			{Key: "indexer_rope_interleave", Values: []string{"true"}},
			{Key: "rope_interleave", Values: []string{"true"}},
		},
		Docs: arch.Docs{
			Variants: "indexers of sparse attention in all or some layers, groups of experts, shared experts, " +
				"dense first layers",
			Rules: "generic, also for experts; the weights of index heads keep their type",
		},
	}, ParseGlmMoeDsa)
}

// ParseGlmMoeDsa parses the config.json of a glm_moe_dsa model.
func ParseGlmMoeDsa(data []byte) (*GlmMoeDsa, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &GlmMoeDsa{config.ParseLatent(top, o, config.Defaults{
		Class: "GlmMoeDsaForCausalLM", Context: 202752, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{1},
	}, config.LatentDefaults{Query: 2048, Kv: 512, Nope: 192, Rope: 64, Value: 256}, config.RopeOptions{})}
	m.NextLayers = o.Integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 256, PerToken: 8, Width: 2048, SumToOne: true, Scaling: 2.5, Shared: 1,
	})
	m.Mixture.ReadDense(o, 3)
	m.ReadIndex(o, 32)
	m.Index.Interleaved = true
	m.parseShared(o)
	return config.Done(m, o)
}

// parseShared reads which layers have indexers: those of a list, of a pattern of letters such as "FSSF", or every n-th
// one after the first few.
func (m *GlmMoeDsa) parseShared(o config.Object) {
	const full, listKey, patternKey = "full", "indexer_types", "index_topk_pattern"
	kinds := o.Words(listKey, m.Layers, full, "shared")
	letters := o.String(patternKey, "")
	if kinds == nil && letters != "" && (len(letters) != m.Layers || strings.Trim(letters, "FS") != "") {
		o.Fail(patternKey, "have a letter F or S for each layer")
		return
	}
	every, first := o.Integer("index_topk_freq", 1, 1, config.MaxLayers), o.Integer("index_skip_topk_offset", 2, 0,
		config.MaxLayers)
	for i := range m.Index.Full {
		switch {
		case kinds != nil:
			m.Index.Full[i] = kinds[i] == full
		case letters != "":
			m.Index.Full[i] = letters[i] == 'F'
		default:
			m.Index.Full[i] = max(i-first+1, 0)%every == 0
		}
	}
	if !m.Index.Full[0] {
		o.Fail(listKey, "begin with full: the first layer has no choice to share")
	}
}

func (m *GlmMoeDsa) Facts() config.Facts { return m.FactsAs("glm_moe_dsa", m.Rope, m.Table()) }

func (m *GlmMoeDsa) Rules() precision.Rules { return indexRules(m.Layers) }

func (m *GlmMoeDsa) Table() table.Table { return m.TableAs("glm_moe_dsa") }
