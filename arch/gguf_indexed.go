package arch

import (
	"fmt"
	"slices"
)

// The mappings of latent attention with indexers: DeepSeek V3.2 and GLM-5.
var (
	ggufDeepseek32 = indexedOf("deepseek32", "deepseek_v32", "DeepseekV32ForCausalLM", "deepseek-v3")
	ggufGlmDsa     = indexedOf("glm-dsa", "glm_moe_dsa", "GlmMoeDsaForCausalLM", "glm4")
)

func indexedOf(architecture, modelType, class, pre string) GGUF {
	g := ggufDeepseek2
	g.Architecture = architecture
	g.Config = map[string]any{
		"model_type": modelType, "architectures": []string{class}, "num_nextn_predict_layers": 0,
	}
	g.Keys = append(slices.Clone(g.Keys),
		GGUFKey{Key: "attention.indexer.head_count", To: "index_n_heads", Field: "Index.Heads"},
		GGUFKey{Key: "attention.indexer.key_length", To: "index_head_dim", Field: "Index.Dim"},
		GGUFKey{Key: "attention.indexer.top_k", To: "index_topk", Field: "Index.Budget"})
	g.Tensors = append(slices.Clone(g.Tensors), ggufLinears(GGUFOp{},
		"indexer.attn_q_b", "self_attn.indexer.wq_b", "indexer.attn_k", "self_attn.indexer.wk",
		"indexer.k_norm", "self_attn.indexer.k_norm", "indexer.proj", "self_attn.indexer.weights_proj")...)
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		if err := adjustLatent(c, architecture, f); err != nil {
			return err
		}
		if err := adjustIndexers(c, f); err != nil {
			return err
		}
		return ggufSparse(c, f)
	}
	g.Also = func(m Model) []GGUFPair {
		pairs := alsoLatent(m)
		if q, ok := m.(*GlmMoeDsa); ok {
			pairs = append(pairs, GGUFPair{"attention.indexer.types", q.Index.Full})
		}
		return pairs
	}
	g.Refuse = nil
	g.Pre = func(Model) string { return pre }
	return g
}

// adjustIndexers sets which layers have an indexer.
func adjustIndexers(c map[string]any, f GGUFFile) error {
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	kinds, all := make([]string, layers), true
	for i := range kinds {
		if kinds[i] = "full"; !hasTensor(f, i, "indexer.proj.weight") {
			kinds[i], all = "shared", false
		}
	}
	if c["model_type"] == "glm_moe_dsa" {
		c["indexer_types"] = kinds
	} else if !all {
		return fmt.Errorf("%w: a layer of %d has no indexer", ErrGGUF, layers)
	}
	return nil
}

// hasTensor reports whether a layer has a tensor.
func hasTensor(f GGUFFile, layer int, name string) bool {
	_, ok := f.Shape(fmt.Sprintf("blk.%d.%s", layer, name))
	return ok
}
