package arch

import "strings"

// GlmMoeDsa is the configuration of model type "glm_moe_dsa" (GLM-5): latent attention that is sparse, in some layers
// with the choice of an earlier indexer, and experts of a sigmoid router. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type GlmMoeDsa struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "glm_moe_dsa",
		Architectures: []string{"GlmMoeDsaForCausalLM"},
		Names:         []string{"n_routed_experts", "num_experts"},
		Parse:         func(config []byte) (Model, error) { return ParseGlmMoeDsa(config) },
		GGUF:          []GGUF{ggufGlmDsa},
		Docs: Docs{
			Variants: "indexers of sparse attention in all or some layers, groups of experts, shared experts, " +
				"dense first layers",
			Rules: "generic, also for experts; the weights of index heads keep their type",
		},
	})
}

// ParseGlmMoeDsa parses the config.json of a glm_moe_dsa model.
func ParseGlmMoeDsa(config []byte) (*GlmMoeDsa, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &GlmMoeDsa{parseLatent(top, o, commonDefaults{
		class: "GlmMoeDsaForCausalLM", ctx: 202752, eps: 1e-5, bos: []int32{0}, eos: []int32{1},
	}, latentDefaults{query: 2048, kv: 512, nope: 192, rope: 64, value: 256}, ropeOptions{})}
	m.NextLayers = o.integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 256, perToken: 8, width: 2048, sumToOne: true, scaling: 2.5, shared: 1,
	})
	m.Mixture.parseDense(o, 3)
	m.parseIndex(o, 32)
	m.Index.Interleaved = true
	m.parseShared(o)
	return parsed(m, o)
}

// parseShared reads which layers have indexers: those of a list, of a pattern of letters such as "FSSF", or every n-th
// one after the first few.
func (m *GlmMoeDsa) parseShared(o object) {
	const full, listKey, patternKey = "full", "indexer_types", "index_topk_pattern"
	kinds := o.kinds(listKey, m.Layers, full, "shared")
	letters := o.str(patternKey, "")
	if kinds == nil && letters != "" && (len(letters) != m.Layers || strings.Trim(letters, "FS") != "") {
		o.fail(patternKey, "have a letter F or S for each layer")
		return
	}
	every, first := o.integer("index_topk_freq", 1, 1, maxLayers), o.integer("index_skip_topk_offset", 2, 0, maxLayers)
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
		o.fail(listKey, "begin with full: the first layer has no choice to share")
	}
}

// Facts implements [Model].
func (m *GlmMoeDsa) Facts() Facts { return m.facts("glm_moe_dsa", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *GlmMoeDsa) Rules() Rules { return indexRules(m.Layers) }

// Table implements [Model].
func (m *GlmMoeDsa) Table() Table { return m.table("glm_moe_dsa") }
