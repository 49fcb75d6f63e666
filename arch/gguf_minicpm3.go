package arch

import (
	"fmt"
	"slices"
)

// ggufMiniCPM3 is the mapping of minicpm3. llama.cpp has the scales of the published model, and heads of values whose
// sizes sum to the width of the model.
// https://github.com/ggml-org/llama.cpp/blob/master/src/models/minicpm3.cpp
var ggufMiniCPM3 = GGUF{
	Architecture: "minicpm3",
	ImportOnly:   true,
	Config: map[string]any{
		"model_type": "minicpm3", "architectures": []string{"MiniCPM3ForCausalLM"},
		"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256, "q_lora_rank": nil,
	},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.q_lora_rank", To: "q_lora_rank", Optional: true},
		GGUFKey{Key: "attention.kv_lora_rank", To: "kv_lora_rank"},
		GGUFKey{Key: "rope.dimension_count", To: "qk_rope_head_dim"},
	),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufLatent(), []GGUFTensor{
		{Name: "rope_factors_short.weight", Why: "its factors are in config.json"},
		{Name: "rope_factors_long.weight", Why: "its factors are in config.json"},
	}),
	Adjust: func(c map[string]any, f GGUFFile) error {
		key, err := number(c, "head_dim")
		rope, errRope := number(c, "qk_rope_head_dim")
		if err != nil || errRope != nil || key <= rope {
			return fmt.Errorf("%w: minicpm3.attention.key_length = %v: want more than rope.dimension_count",
				ErrGGUF, c["head_dim"])
		}
		c["qk_nope_head_dim"] = key - rope
		delete(c, "head_dim")
		if _, ok := f.Shape("rope_factors_short.weight"); !ok {
			return nil
		}
		return ggufLongRope(c, map[string]any{"original_max_position_embeddings": c["max_position_embeddings"]}, f)
	},
}
