package arch_test

import (
	"testing"
)

// TestBadLatentConfigs is TestBadConfigs for latent and compressed attention.
func TestBadLatentConfigs(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, want string }{
		{"longcat_flash-published", "zero_expert_type", `"copy"`, `zero_expert_type = "copy": must be "identity"`},
		{"longcat_flash-published", "mla_scale_q_lora", "false", "mla_scale_q_lora = false: must be true"},
		{"longcat_flash-published", "num_layers", "-", "num_layers: missing"},
		{"longcat_flash-published", "ffn_hidden_size", "0", "ffn_hidden_size = 0: must be > 0"},
		{"longcat_flash-published", "q_lora_rank", "null", "q_lora_rank = null: must be a number"},
		{"deepseek_v4-published", "compress_ratios", "[0]", "must have 3 elements, one per layer (it has 1)"},
		{"deepseek_v4-published", "compress_ratios", "[0,4,5]", "must hold 0, 4 and 128 only"},
		{"deepseek_v4", "compress_rates", `{"heavily_compressed_attention":0}`,
			"compress_rates.heavily_compressed_attention = 0: must be > 0"},
		{"deepseek_v4", "layer_types", `["full_attention","sliding_attention","sliding_attention"]`,
			"must hold sliding_attention and compressed_sparse_attention and heavily_compressed_attention only"},
		{"deepseek_v4", "num_key_value_heads", "2", "num_key_value_heads = 2: must be 1"},
		{"deepseek_v4", "o_groups", "3", "o_groups = 3: must divide num_attention_heads = 4"},
		{"deepseek_v4", "hc_mult", "65", "hc_mult = 65: must be <= 64"},
		{"deepseek_v4", "scoring_func", `"softmax"`, `scoring_func = "softmax": must be "sqrtsoftplus"`},
		{"deepseek_v4", "partial_rotary_factor", "0.19", "must give an even number of rotated channels (it is 3)"},
		{"deepseek_v4", "index_head_dim", "4", "must be a multiple of 4 and at least 8, the rotated channels"},
		{"deepseek_v4", "rope_parameters", `{"main":{"rope_type":"default"}}`, "hold parameters for main and compress"},
		{"deepseek_v4", "mlp_layer_types", `["dense","moe","moe"]`, "must hold hash_moe and moe only"},
	} {
		refuses(t, c.checkpoint, c.key, c.value, c.want)
	}
}
