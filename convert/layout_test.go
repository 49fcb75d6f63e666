package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

const moeConfig = `{
  "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 256, "hidden_size": 64, ` +
	`"intermediate_size": 128,
  "moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1, ` +
	`"norm_topk_prob": true, "mlp_only_layers": [],
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, ` +
	`"max_position_embeddings": 128,
  "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
}
`

// splitExperts converts fused experts to another layout: one tensor per expert, or one per projection.
func splitExperts(c *checkpoint, perExpert bool) *checkpoint {
	const experts = 4
	var out []tensor
	put := func(name string, shape []int64, data []byte) {
		out = append(out, tensor{safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: shape}, data})
	}
	for _, tn := range c.tensors["model.safetensors"] {
		base, projection, ok := strings.Cut(tn.Name, ".mlp.experts.")
		if !ok {
			out = append(out, tn)
			continue
		}
		names := map[string][]string{"gate_up_proj": {"gate_proj", "up_proj"}, "down_proj": {"down_proj"}}[projection]
		slabs := slices.Collect(slices.Chunk(tn.data, len(tn.data)/experts/len(names))) // expert by expert, name by name
		rows, cols := tn.Shape[1]/int64(len(names)), tn.Shape[2]
		for i, name := range names {
			var all [][]byte
			for e := range experts {
				slab := slabs[e*len(names)+i]
				all = append(all, slab)
				if perExpert {
					put(fmt.Sprintf("%s.mlp.experts.%d.%s.weight", base, e, name), []int64{rows, cols}, slab)
				}
			}
			if !perExpert {
				put(base+".mlp.switch_mlp."+name+".weight", []int64{experts, rows, cols}, bytes.Join(all, nil))
			}
		}
	}
	c.tensors["model.safetensors"] = out
	return c
}

// The published layout of experts does not affect the image.
func TestExpertLayouts(t *testing.T) {
	create := func(c *checkpoint, p recipe.Precision) Result {
		return mustCreate(t, openStore(t), "x", from(c.write(t, t.TempDir())), Options{Precision: p})
	}
	make := func() *checkpoint { return finiteWeights(tiny(t, moeConfig, 3)) }
	for _, p := range []recipe.Precision{{}, {Type: quantize.Int4}, {Type: quantize.MXFP4}} {
		want := create(make(), p).Digest
		for name, c := range map[string]*checkpoint{
			"one per expert": splitExperts(make(), true), "stacked": splitExperts(make(), false),
			"one per expert, in shards": splitExperts(make(), true).shard(3),
		} {
			if got := create(c, p).Digest; got != want {
				t.Errorf("%s, %q: digest %s, want %s", name, p.Type, got, want)
			}
		}
	}
}

func TestExpertPlan(t *testing.T) {
	p, err := planOf(t, splitExperts(tiny(t, moeConfig, 3), true), recipe.Precision{Type: quantize.Int4})
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.0.mlp.experts.gate_up_proj"
	i := slices.IndexFunc(p.Tensors, func(tn plan.Tensor) bool { return tn.Name == name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	tn := p.Tensors[i]
	if len(tn.Sources) != 8 || tn.Sources[3].Name != "model.layers.0.mlp.experts.1.up_proj.weight" ||
		!slices.Equal(tn.Transform, []string{"stack", "quantize to int4"}) {
		t.Errorf("%d sources, %v", len(tn.Sources), tn.Transform)
	}
}
