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
	} {
		t.Run(c.checkpoint+"/"+c.key+"="+c.value, func(t *testing.T) {
			_, err := Detect(edited(t, c.checkpoint, c.key, c.value))
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a bad configuration: %q", err, c.want)
			}
		})
	}
}
