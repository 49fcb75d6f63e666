package convert

import (
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// These digests never change: every later version must reproduce a released image from its checkpoint, byte for byte.
// If this test fails, a change affects the bytes of images. Revert that change.
func TestPinnedDigests(t *testing.T) {
	for _, c := range []struct {
		name string
		p    recipe.Precision
		want string
	}{
		{"as it is", recipe.Precision{}, "sha256:8db949379d87dd7ab3075e3b782e3678c833c8f0351e9c7af3e63b2be2a5114f"},
		{
			"int4", recipe.Precision{Type: quantize.Int4, Uniform: true, RuleSet: recipe.RuleSet1},
			"sha256:b6903f07f9e3ff69f90441df02da74c44374796e8a967e4bdd775ae22642f185",
		},
	} {
		for _, shards := range []int{0, 3} {
			ck := finiteWeights(tiny(t, wideConfig, 20))
			ck.files["generation_config.json"] = `{"temperature": 0.5}`
			if shards > 0 {
				ck.shard(shards)
			}
			r := mustCreate(t, openStore(t), "x", from(ck.write(t, t.TempDir())), Options{Precision: c.p})
			if string(r.Digest) != c.want {
				t.Errorf("%s, %d shards: %s, want %s", c.name, shards, r.Digest, c.want)
			}
		}
	}
}
