package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// DeepseekV32 is the configuration of model type "deepseek_v32" (DeepSeek V3.2): [DeepseekV3] with sparse attention.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type DeepseekV32 struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "deepseek_v32",
		Latent:        true,
		Architectures: []string{"DeepseekV32ForCausalLM"},
		Names:         []string{"n_routed_experts", "num_experts"},
		GGUF:          []gguf.Map{ggufDeepseek32},
		Published:     table.Published{Experts: table.PerExpert},
		Wide:          true,
		Chat: &arch.Chat{
			// Published without a chat template.
			Marks: []string{"deepseekv32", "deepseek_v32"}, Parser: "deepseek3.2", Renderer: "deepseek3", Thinks: true,
		},
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Fixed: []arch.Fixed{
			{Key: "moe_layer_freq", Values: []string{"1"}},
		},
		Docs: arch.Docs{
			Variants: "`deepseek_v3` with indexers of sparse attention in all layers",
			Rules:    "generic, also for experts; the weights of index heads keep their type",
		},
	}, ParseDeepseekV32)
}

// ParseDeepseekV32 parses the config.json of a deepseek_v32 model.
func ParseDeepseekV32(data []byte) (*DeepseekV32, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV32{config.ParseLatent(top, o, config.Defaults{
		Class: "DeepseekV32ForCausalLM", Context: 163840, NormEps: 1e-6, BOS: []int32{0}, EOS: []int32{1},
	}, config.LatentDefaults{Query: 1536, Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{})}
	m.NextLayers = o.Integer("num_nextn_predict_layers", 1, 0, 16)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 256, PerToken: 8, Width: 2048, SumToOne: true, Scaling: 2.5, Shared: 1, Groups: 8, TopGroups: 4,
	})
	m.Mixture.ReadDense(o, 3)
	m.ReadIndex(o, 64)
	return config.Done(m, o)
}

func (m *DeepseekV32) Facts() config.Facts { return m.FactsAs("deepseek_v32", m.Rope, m.Table()) }

func (m *DeepseekV32) Rules() precision.Rules { return indexRules(m.Layers) }

// indexRules are the precision rules of models with indexers.
func indexRules(layers int) precision.Rules {
	return precision.Generic(layers, precision.Rule{Name: "decides in float32",
		Ends: []string{".indexer.weights_proj.weight"},
		To:   []precision.Target{precision.Source}})
}

func (m *DeepseekV32) Table() table.Table { return m.TableAs("deepseek_v32") }

// The mappings of latent attention with indexers: DeepSeek V3.2 and GLM-5.
var (
	ggufDeepseek32 = indexedOf("deepseek32", "deepseek_v32", "DeepseekV32ForCausalLM", "deepseek-v3")
	ggufGlmDsa     = indexedOf("glm-dsa", "glm_moe_dsa", "GlmMoeDsaForCausalLM", "glm4")
)

func indexedOf(architecture, modelType, class, pre string) gguf.Map {
	g := ggufDeepseek2
	g.Architecture = architecture
	g.Config = map[string]any{
		"model_type": modelType, "architectures": []string{class}, "num_nextn_predict_layers": 0,
	}
	g.Keys = append(slices.Clone(g.Keys),
		gguf.Key{Key: "attention.indexer.head_count", To: "index_n_heads", Field: "Index.Heads"},
		gguf.Key{Key: "attention.indexer.key_length", To: "index_head_dim", Field: "Index.Dim"},
		gguf.Key{Key: "attention.indexer.top_k", To: "index_topk", Field: "Index.Budget"})
	g.Tensors = append(slices.Clone(g.Tensors), gguf.Linears(gguf.Op{},
		"indexer.attn_q_b", "self_attn.indexer.wq_b", "indexer.attn_k", "self_attn.indexer.wk",
		"indexer.k_norm", "self_attn.indexer.k_norm", "indexer.proj", "self_attn.indexer.weights_proj")...)
	g.Adjust = func(c map[string]any, f gguf.File) error {
		if err := gguf.SetLatent(c, architecture, f); err != nil {
			return err
		}
		if err := adjustIndexers(c, f); err != nil {
			return err
		}
		return gguf.SetSparse(c, f)
	}
	g.Also = func(m gguf.Model) []gguf.Pair {
		pairs := gguf.AlsoLatent(m)
		if q, ok := m.(*GlmMoeDsa); ok {
			pairs = append(pairs, gguf.Pair{Key: "attention.indexer.types", Value: q.Index.Full})
		}
		return pairs
	}
	g.Refuse = nil
	g.Pre = func(gguf.Model) string { return pre }
	return g
}

// adjustIndexers sets which layers have an indexer.
func adjustIndexers(c map[string]any, f gguf.File) error {
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	kinds, all := make([]string, layers), true
	for i := range kinds {
		if kinds[i] = "full"; !gguf.LayerHas(f, i, "indexer.proj.weight") {
			kinds[i], all = "shared", false
		}
	}
	if c["model_type"] == "glm_moe_dsa" {
		c["indexer_types"] = kinds
	} else if !all {
		return fmt.Errorf("%w: a layer of %d has no indexer", gguf.ErrMetadata, layers)
	}
	return nil
}
