package table

import (
	"testing"
)

func TestUnwrapped(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
		{"_orig_mod.model.norm.weight", "model.norm.weight"},
		{"module.model.norm.weight", "model.norm.weight"},
		{"module._orig_mod.model.norm.weight", "model.norm.weight"},
		{"_orig_mod.module.model.norm.weight", "model.norm.weight"},
		{"base_model.model.model.norm.weight", "model.norm.weight"},
		{"module.base_model.model.model.norm.weight", "model.norm.weight"},
		{"model.layers.0._orig_mod.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
		{"model._fsdp_wrapped_module.layers.0._fsdp_wrapped_module._checkpoint_wrapped_module.mlp.up_proj.weight",
			"model.layers.0.mlp.up_proj.weight"},
		{"model.module.x", "model.module.x"},
		{"a_orig_mod.x", "a_orig_mod.x"},
	} {
		if got := unwrapped(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
