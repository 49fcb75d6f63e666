package arch

import (
	"fmt"
	"slices"
)

// ggufKimiLinear is the mapping of kimi_linear, which is only imported. Layers with a delta net have 0 key heads.
var ggufKimiLinear = GGUF{
	Architecture: "kimi-linear",
	ImportOnly:   true,
	Config: map[string]any{
		"model_type": "kimi_linear", "architectures": []string{"KimiLinearForCausalLM"}, "q_lora_rank": nil,
		"norm_topk_prob": true,
	},
	Keys: append(ggufGrouped("num_experts", "num_shared_experts"),
		GGUFKey{Key: "attention.q_lora_rank", To: "q_lora_rank", Optional: true},
		GGUFKey{Key: "attention.kv_lora_rank", To: "kv_lora_rank"},
		GGUFKey{Key: "attention.value_length_mla", To: "v_head_dim"},
		GGUFKey{Key: "rope.dimension_count", To: "qk_rope_head_dim"},
		GGUFKey{Key: "ssm.conv_kernel", To: "linear_conv_kernel_dim"},
		GGUFKey{Key: "kda.head_dim", To: "linear_head_dim"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufLatent(), ggufMoE, ggufShared,
		ggufNames(GGUFOp{}, "ssm_conv1d_q.weight", "self_attn.q_conv1d.weight",
			"ssm_conv1d_k.weight", "self_attn.k_conv1d.weight", "ssm_conv1d_v.weight", "self_attn.v_conv1d.weight",
			"ssm_f_a.weight", "self_attn.f_a_proj.weight", "ssm_f_b.weight", "self_attn.f_b_proj.weight",
			"ssm_g_a.weight", "self_attn.g_a_proj.weight", "ssm_g_b.weight", "self_attn.g_b_proj.weight",
			"ssm_beta.weight", "self_attn.b_proj.weight", "ssm_dt.bias", "self_attn.dt_bias",
			"ssm_norm.weight", "self_attn.o_norm.weight"),
		ggufNames(logOf(GGUFOp{}), "ssm_a", "self_attn.A_log", "ssm_a.weight", "self_attn.A_log")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := adjustLatent(c, "kimi-linear", f); err != nil {
			return err
		}
		layers, err := ggufLayers(c)
		if err != nil {
			return err
		}
		kinds := make([]string, layers)
		for i := range kinds {
			if kinds[i] = fullAttention; !hasTensor(f, i, "attn_kv_a_mqa.weight") {
				kinds[i] = linearAttention
				shape, ok := f.Shape(fmt.Sprintf("blk.%d.ssm_beta.weight", i))
				if !ok || len(shape) != 2 {
					return fmt.Errorf("%w: layer %d has neither attention nor a delta net", ErrGGUF, i)
				}
				c["linear_num_heads"] = shape[0]
			}
		}
		c["layer_types"] = kinds
		delete(c, "rope_scaling")
		return nil
	},
}
