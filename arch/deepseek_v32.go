package arch

import "fmt"

// DeepseekV32 is the configuration of model type "deepseek_v32" (DeepSeek V3.2): [DeepseekV3] with sparse attention.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type DeepseekV32 struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "deepseek_v32",
		Architectures: []string{"DeepseekV32ForCausalLM"},
		Names:         []string{"n_routed_experts", "num_experts"},
		Parse:         func(config []byte) (Model, error) { return ParseDeepseekV32(config) },
		GGUF:          []GGUF{ggufDeepseek32},
		Docs: Docs{
			Variants: "`deepseek_v3` with indexers of sparse attention in all layers",
			Rules:    "generic, also for experts; the weights of index heads keep their type",
		},
	})
}

// ParseDeepseekV32 parses the config.json of a deepseek_v32 model.
func ParseDeepseekV32(config []byte) (*DeepseekV32, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV32{parseLatent(top, o, commonDefaults{
		class: "DeepseekV32ForCausalLM", ctx: 163840, eps: 1e-6, bos: []int32{0}, eos: []int32{1},
	}, latentDefaults{query: 1536, kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{})}
	m.NextLayers = o.integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 256, perToken: 8, width: 2048, sumToOne: true, scaling: 2.5, shared: 1, groups: 8, topGroups: 4,
	})
	m.Mixture.parseDense(o, 3)
	m.parseIndex(o, 64)
	return parsed(m, o)
}

// parseIndex reads the keys of indexers.
func (m *LatentDecoder) parseIndex(o object, heads int) {
	m.Index = Index{
		Heads:  o.integer("index_n_heads", heads, 1, maxHeads),
		Dim:    o.integer("index_head_dim", 128, 1, maxHeadDim),
		Budget: o.integer("index_topk", 2048, 1, maxContext),
		Full:   make([]bool, m.Layers),
	}
	for i := range m.Index.Full {
		m.Index.Full[i] = true
	}
	o.kinds("layer_types", m.Layers, sparseLayers...)
	switch {
	case m.Index.Dim < m.Latent.RopeDim || m.Index.Dim%4 != 0:
		o.fail("index_head_dim", fmt.Sprintf("be a multiple of 4 and at least qk_rope_head_dim = %d", m.Latent.RopeDim))
	case m.Latent.QueryRank == 0:
		o.fail("q_lora_rank", "be a number: indexers read the latent of queries")
	}
}

// sparseLayers are the names of layers with an indexer: transformers 5.23's, and those of published configurations.
var sparseLayers = []string{"indexed_attention", "deepseek_sparse_attention"}

// Facts implements [Model].
func (m *DeepseekV32) Facts() Facts { return m.facts("deepseek_v32", m.Rope, m.Table()) }

// Rules implements [Model].
func (m *DeepseekV32) Rules() Rules { return indexRules(m.Layers) }

// indexRules are the precision rules of models with indexers.
func indexRules(layers int) Rules {
	return genericRules(layers, Rule{Name: "decides in float32", Ends: []string{".indexer.weights_proj.weight"},
		To: []Target{Source}})
}

// Table implements [Model].
func (m *DeepseekV32) Table() Table { return m.table("deepseek_v32") }
