package arch_test

import (
	"testing"
)

// Configurations of hybrids that contradict themselves, or say what no model of the type does, are refused by key.
func TestHybridConfigurations(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, want string }{
		{"olmo_hybrid", "linear_num_value_heads", "3", "must be a multiple of linear_num_key_heads = 2"},
		{"olmo_hybrid", "layer_types", `["conv","full_attention"]`, `(element 0 is "conv")`},
		{"minimax", "full_attn_alpha_factor", "0", "full_attn_alpha_factor = 0: must be > 0"},
		{"minimax", "shared_intermediate_size", "8", "must be 0: shared experts are not supported"},
		{"minimax", "postnorm", "false", "postnorm = false: must be true"},
		{"recurrent_gemma", "block_types", `["attention","rnn"]`, "must hold recurrent and attention only"},
		{"recurrent_gemma", "block_types", `[]`, "must not be empty"},
		{"recurrent_gemma", "lru_width", "33", "lru_width = 33: must be a multiple of num_attention_heads = 4"},
		{"recurrent_gemma", "intermediate_size", "1", "must be at least 2: it counts both halves"},
		{"kimi_linear", "linear_conv_kernel_dim", "1", "linear_conv_kernel_dim = 1: must be at least 2"},
		{"kimi_linear", "mla_use_nope", "false", "mla_use_nope = false: must be true: attention has no rope"},
		{"kimi_linear", "moe_router_activation_func", `"softmax"`, `must be "sigmoid"`},
		{"kimi_linear", "moe_layer_freq", "2", "moe_layer_freq = 2: must be 1"},
		{"kimi_linear-published", "linear_attn_config", `{"full_attn_layers":[3]}`, "must be a list of integers from 1 to 2"},
		{"kimi_linear-published", "linear_attn_config", `{"full_attn_layers":[2],"kda_layers":[1,2]}`,
			"must not hold layer 2, which full_attn_layers has, too"},
		{"zamba2", "num_mem_blocks", "4", "num_mem_blocks = 4: must be at most 3, the number of hybrid layers"},
		{"zamba2", "num_key_value_heads", "2", "the adapters of keys and values have as many heads"},
		{"zamba2", "layers_block_type", "-", "layers_block_type: missing"},
		{"qwen4_exp", "text_config.hc_count", "1", "hc_count = 1: must be >= 2"},
		{"qwen4_exp", "text_config.indexer_budget", "null", "indexer_budget: missing"},
		{"qwen4_exp", "text_config.indexer_budget", "10", "must be a multiple of indexer_compress_ratio = 4"},
		{"qwen4_exp", "text_config.indexer_kv_heads", "2", "indexer_kv_heads = 2: must be 1"},
		{"qwen4_exp", "text_config.indexer_head_dim", "2", "must be a multiple of 4 and at least 4, the rotated channels"},
		{"qwen4_exp", "text_config.output_gate_type", `"relu"`, `must be "silu" or "sigmoid"`},
		{"qwen4_exp", "text_config.ple_layer_ids", "[3]", "must be a list of integers from 1 to 2"},
		{"qwen4_exp", "text_config.ple_layer_ids", "[2]", "must name layers with linear attention only (2 has none)"},
		{"qwen4_exp", "text_config.ple_embed_dim", "18", "must be a multiple of the 4 hashes of a row"},
		{"qwen4_exp", "text_config.heads_per_ngram", "1024", "must leave at most 1024 hashes to all layers"},
		{"qwen4_exp", "text_config.split_ngram_parts", "16385", "must be <= 16384"},
		{"qwen4_exp", "text_config.eos_token_id", "null", "must name a token, at which n-grams end"},
		{"qwen4_exp", "text_config.ngram_vocab_size_base", "1073741824", "must leave at most 2147483647 rows to a table"},
	} {
		refuses(t, c.checkpoint, c.key, c.value, c.want)
	}
}
