package convert

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
)

// randomLoRA returns the two matrices of an adapter of rank 2.
func randomLoRA(module string, out, in int64) (a, b tensor) {
	a, b = f32(module+".lora_A.weight", 2, in), f32(module+".lora_B.weight", out, 2)
	r := rand.New(rand.NewPCG(7, uint64(out)))
	for _, t := range []*tensor{&a, &b} {
		for range t.NumElements() {
			t.data = binary.LittleEndian.AppendUint32(t.data, math.Float32bits(float32(r.NormFloat64())))
		}
	}
	return a, b
}

// An adapter of fused projections changes their parts as PEFT's merge of the fused matrix does, both in the checkpoint
// (which has that matrix) and in its image (which has the parts).
func TestAdapterOfFusedWeights(t *testing.T) {
	type part struct {
		name string
		rows int
	}
	for _, c := range []struct {
		base, module string
		out, in      int64
		parts        []part
	}{
		{
			"phi3-published", "model.layers.1.self_attn.qkv_proj", 128, 64,
			[]part{{"q_proj", 64}, {"k_proj", 32}, {"v_proj", 32}},
		},
		{"phi3-published", "model.layers.0.mlp.gate_up_proj", 128, 64, []part{{"gate_proj", 64}, {"up_proj", 64}}},
		{"glm4-published", "model.layers.0.mlp.gate_up_proj", 128, 64, []part{{"gate_proj", 64}, {"up_proj", 64}}},
	} {
		base := absolute(t, filepath.Join("../testdata/models", c.base))
		file := filepath.Join(base, "model.safetensors")
		a, b := randomLoRA(c.module, c.out, c.in)
		dir := writeLoRA(t, a, b)
		store := openStore(t)
		merged := mustCreate(t, store, "merged", from(base, adapterLine(dir)), Options{})
		mustCreate(t, store, "plain", from(base), Options{})
		if image := mustCreate(t, store, "image", from("plain", adapterLine(dir)), Options{}); image.Digest != merged.Digest {
			t.Errorf("%s: of the image it is %s, of the folder %s", c.module, image.Digest, merged.Digest)
		}
		whole := values(t, file, c.module+".weight")
		row, block := 0, c.module[:len(c.module)-len(filepath.Ext(c.module))+1]
		for _, p := range c.parts {
			name := block + p.name + ".weight"
			got := values(t, layerOf(t, store, "merged", name), name)
			if len(got) != p.rows*int(c.in) {
				t.Fatalf("%s has %d elements", name, len(got))
			}
			for i, v := range got {
				at := row + i/int(c.in)
				exact := float64(whole[at*int(c.in)+i%int(c.in)])
				for k := range 2 {
					exact += float64(float32FromBytes(b.data[4*(2*at+k):])) *
						float64(float32FromBytes(a.data[4*(k*int(c.in)+i%int(c.in)):]))
				}
				if math.Abs(float64(v)-exact) > math.Abs(exact)/256+1e-6 { // of bfloat16
					t.Fatalf("%s, element %d: %v, want %v", name, i, v, exact)
				}
			}
			row += p.rows
		}
		a, b = randomLoRA(c.module, c.out+2, c.in)
		for _, from := range []string{base, "plain"} {
			checkAdapterShape(t, store, from, writeLoRA(t, a, b), c.module)
		}
	}
}

// checkAdapterShape expects that an adapter of another shape is refused by name.
func checkAdapterShape(t *testing.T, st *store.Store, base, dir, module string) {
	t.Helper()
	_, err := Create(t.Context(), st, modelName(t, "x"), from(base, adapterLine(dir)), Options{})
	if err == nil || !strings.Contains(err.Error(), "with lora_B it changes a weight of shape [130 64], but ") ||
		!strings.Contains(err.Error(), module) {
		t.Errorf("%s from %s: %v", module, base, err)
	}
}
