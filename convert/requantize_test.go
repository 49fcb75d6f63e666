package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// A packed checkpoint is requantized only on request.
func TestRequantize(t *testing.T) {
	c := published(t, "mlx-mixed_2_6")
	types := func(p recipe.Precision) map[string]string {
		t.Helper()
		plan, err := planOf(t, c, p)
		if err != nil {
			t.Fatal(err)
		}
		return typesOf(plan)
	}
	const embed, q, down = "model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight",
		"model.layers.2.mlp.down_proj.weight"
	kept := types(recipe.Precision{})
	if kept[q] != "int2" || kept[down] != "int6" {
		t.Errorf("kept: %v", kept)
	}
	requested := types(recipe.Precision{Type: quantize.Int4})
	if requested[q] != "int4" || requested[down] != "int8" || requested[embed] != "int8" {
		t.Errorf("int4: %v", requested)
	}
	first := types(recipe.Precision{Type: quantize.Int4, RuleSet: recipe.RuleSet1})
	if first[q] != "int4" || first[down] != "int8" || first[embed] != kept[embed] {
		t.Errorf("int4 by the first rule set: %v", first)
	}
	plan, err := planOf(t, c, recipe.Precision{Type: quantize.Int4})
	if err != nil ||
		!slices.ContainsFunc(plan.Warnings, func(w string) bool { return strings.Contains(w, "quantized a second time") }) {
		t.Errorf("warnings %q, %v", plan.Warnings, err)
	}
	if one := types(recipe.Precision{Rules: []recipe.Rule{rule(t, "*.down_proj.weight=bf16")}}); one[down] != "bf16" ||
		one[q] != "int2" {
		t.Errorf("one rule: %v", one)
	}
}

// The image does not depend on the sharding, the processors or the memory.
func TestSourceSharding(t *testing.T) {
	for _, name := range []string{"mlx-experts", "fp8-experts", "fp8-block-uneven"} {
		for _, p := range []recipe.Precision{{}, {Type: quantize.Int6}} {
			one := mustCreate(t, openStore(t), "x", from(published(t, name).write(t, t.TempDir())),
				Options{Precision: p, Parallel: 1})
			c := published(t, name).shard(3)
			spread := mustCreate(t, openStore(t), "x", from(c.write(t, t.TempDir())),
				Options{Precision: p, Parallel: 3, Memory: 512 << 20})
			if one.Digest != spread.Digest {
				t.Errorf("%s, %q: %s in one file, %s in three", name, p.Type, one.Digest, spread.Digest)
			}
		}
	}
}
