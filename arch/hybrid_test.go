package arch

import (
	"errors"
	"strings"
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
	} {
		t.Run(c.checkpoint+"/"+c.key+"="+c.value, func(t *testing.T) {
			_, err := Detect(edited(t, c.checkpoint, c.key, c.value))
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a bad configuration: %q", err, c.want)
			}
		})
	}
}
