package convert

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/packed/declared"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

func mlxKey(key, value string) func(*testing.T, *checkpoint) {
	return func(t *testing.T, c *checkpoint) {
		var config map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.files[source.ConfigName]), &config); err != nil {
			t.Fatal(err)
		}
		for _, twin := range []string{"quantization", "quantization_config"} {
			var q map[string]json.RawMessage
			if err := json.Unmarshal(config[twin], &q); err != nil {
				t.Fatal(err)
			}
			q[key] = json.RawMessage(value)
			config[twin], _ = json.Marshal(q)
		}
		text, _ := json.Marshal(config)
		c.files[source.ConfigName] = string(text)
	}
}

func without(names ...string) func(*testing.T, *checkpoint) {
	return func(_ *testing.T, c *checkpoint) {
		for _, n := range names {
			c.drop(n)
		}
	}
}

// Damage is reported in one line that names the tensor or the key, the problem, and a remedy.
func TestDamagedSources(t *testing.T) {
	const up = "model.layers.1.mlp.up_proj"
	reshape := func(name string, shape ...int64) func(*testing.T, *checkpoint) {
		return func(_ *testing.T, c *checkpoint) { c.edit(name, func(tn *tensor) { tn.Shape = shape }) }
	}
	for _, c := range []struct {
		folder, name string
		damage       func(*testing.T, *checkpoint)
		kind         error
		want         []string
	}{
		{
			"mlx-int4-g32", "no scales", without(up + ".scales"), source.ErrSource,
			[]string{"tensor " + up + ".weight", up + ".scales is missing", "download the checkpoint again"},
		},
		{
			"mlx-int4-g32", "no biases", without(up + ".biases"), source.ErrSource,
			[]string{"tensor " + up + ".weight", up + ".biases is missing"},
		},
		{"mlx-int4-g32", "no codes", without(up + ".weight"), table.ErrMismatch, []string{up + ".weight: absent"}},
		{
			"mlx-int4-g32", "wrong group", mlxKey("group_size", "64"), source.ErrSource,
			[]string{
				".scales: cannot import: it is BF16", "4 bits in groups of 64", "it would be BF16", "correct the configuration",
			},
		},
		{
			"mlx-int4-g32", "impossible group", mlxKey("group_size", "48"), source.ErrSource,
			[]string{"config.json: quantization: ", "no affine format of 4 bits in groups of 48, want 2, 3, 4, 5, 6 or 8 bits"},
		},
		{
			"mlx-int4-g32", "impossible bits", mlxKey("bits", "7"), source.ErrSource,
			[]string{"config.json: quantization: ", "7 bits"},
		},
		{
			"mlx-int4-g32", "impossible bits of a layer", mlxKey(up, `{"bits": 9, "group_size": 32}`),
			source.ErrSource,
			[]string{"tensor " + up + ".weight", "9 bits", "correct the configuration"},
		},
		{
			"mlx-int4-g32", "other bits of a layer", mlxKey(up, `{"bits": 8, "group_size": 32}`), source.ErrSource,
			[]string{"tensor " + up + ".scales", "8 bits in groups of 32"},
		},
		{
			"mlx-int4-g32", "bits and groups that fit each other only", mlxKey(up, `{"bits": 2, "group_size": 64}`),
			table.ErrMismatch,
			[]string{"tensor " + up + ".weight: wrong shape: has shape [128 128] (read as MLX int2), want [128 64]"},
		},
		{
			"mlx-int4-g32", "unknown mode", mlxKey("mode", `"fp3"`), source.ErrSource,
			[]string{"quantization: ", `mode = "fp3": want affine, mxfp4, mxfp8 or nvfp4`},
		},
		{
			"mlx-int4-g32", "bits that are no number", mlxKey("bits", `"four"`), source.ErrSource,
			[]string{"config.json: quantization: "},
		},
		{
			"mlx-int4-g32", "absent path", mlxKey("model.layers.9.mlp.up_proj", `{"bits": 4, "group_size": 32}`),
			source.ErrSource,
			[]string{
				`quantization."model.layers.9.mlp.up_proj"`, "there is no tensor model.layers.9.mlp.up_proj.weight",
				"remove the key",
			},
		},
		{
			"mlx-int4-g32", "path of a plain tensor", mlxKey("model.norm", `{"bits": 4, "group_size": 32}`), source.ErrSource,
			[]string{"tensor model.norm.weight", "it is BF16", "packed in 4 bits in groups of 32"},
		},
		{
			"mlx-int4-g32", "path that is not packed", mlxKey(up, "false"), source.ErrSource,
			[]string{"tensor " + up + ".weight", "not packed"},
		},
		{
			"mlx-int4-g32", "wrong shape", reshape(up+".weight", 64, 16), source.ErrSource,
			[]string{"tensor " + up + ".scales"},
		},
		{"mlx-int4-g32", "scales of another type", func(_ *testing.T, c *checkpoint) {
			c.edit(up+".scales", func(tn *tensor) { tn.DType = safetensors.I16 })
		}, source.ErrSource, []string{"tensor " + up + ".scales", "its type is I16"}},
		{"mlx-int4-g32", "no quantization", func(_ *testing.T, c *checkpoint) {
			c.files[source.ConfigName] = string(declared.Strip([]byte(c.files[source.ConfigName])))
		}, source.ErrSource, []string{".weight: cannot import: it is packed by MLX", `no key "quantization"`}},
		{"mlx-experts", "one projection of experts in other bits", func(t *testing.T, c *checkpoint) {
			// The experts have 4 and 2 bits, and one tensor cannot have both types.
			const up = "model.layers.0.mlp.switch_mlp.up_proj"
			mlxKey(up, `{"bits": 2, "group_size": 32}`)(t, c)
			c.edit(up+".weight", func(tn *tensor) { tn.Shape[2] /= 2; tn.data = tn.data[:len(tn.data)/2] })
		}, source.ErrSource, []string{"it is MLX int4-g32", "another part of the tensor", "MLX int2-g32",
			"ask for a type with --quantize or --quantize-rule"}},
		{
			"fp8-block", "no scales", without(up + ".weight_scale_inv"), source.ErrSource,
			[]string{"tensor " + up + ".weight", "it is F8_E4M3, and its scale is missing", "use the checkpoint in bf16"},
		},
		{"fp8-block", "wrong block", data(`"weight_block_size": [
      32,`, `"weight_block_size": [
      16,`), source.ErrSource, []string{
			"_scale_inv: cannot import: it has shape",
			"blocks of 16 x 32 (config.json quantization_config.weight_block_size)",
		}},
		{"fp8-block", "impossible block", data(`"weight_block_size": [
      32,`, `"weight_block_size": [
      0,`), source.ErrSource, []string{"quantization_config.weight_block_size", "want two positive numbers"}},
		{
			"fp8-block", "wrong shape", reshape(up+".weight", 64, 128), source.ErrSource,
			[]string{"tensor " + up + ".weight_scale_inv"},
		},
		{"fp8-block", "scales of another type", func(_ *testing.T, c *checkpoint) {
			c.edit(up+".weight_scale_inv", func(tn *tensor) { tn.DType = safetensors.I32 })
		}, source.ErrSource, []string{"tensor " + up + ".weight_scale_inv", "has type I32"}},
		{"fp8-block", "a scale that is no number", func(_ *testing.T, c *checkpoint) {
			c.edit(up+".weight_scale_inv", func(tn *tensor) { copy(tn.data, []byte{0, 0, 0xc0, 0x7f}) })
		}, source.ErrSource, []string{"tensor " + up + ".weight_scale_inv", "element 0 is NaN"}},
		{"fp8-block", "an element that is no number", func(_ *testing.T, c *checkpoint) {
			c.edit(up+".weight", func(tn *tensor) { tn.data[70] = 0x7f })
		}, quantize.ErrNotFinite, []string{"tensor " + up + ".weight", "element 70 is NaN"}},
		{"fp8-block-powers", "an element that is no number, kept", func(_ *testing.T, c *checkpoint) {
			c.edit(up+".weight", func(tn *tensor) { tn.data[70] = 0xff })
		}, quantize.ErrNotFinite, []string{"tensor " + up + ".weight", "element 70 is NaN"}},
		{
			"fp8-ct-channel", "no scales", without("model.layers.1.mlp.up_proj.weight_scale"), source.ErrSource,
			[]string{"tensor " + up + ".weight", "its scale is missing"},
		},
		{
			"fp8-ct-channel", "wrong shape", reshape(up+".weight_scale", 64, 2), source.ErrSource,
			[]string{"tensor " + up + ".weight_scale", "it has shape [64 2], which matches"},
		},
		{
			"fp8-experts", "no scale of an expert", without("model.layers.1.mlp.experts.3.up_proj.weight_scale_inv"),
			source.ErrSource,
			[]string{"tensor model.layers.1.mlp.experts.3.up_proj.weight", "its scale is missing"},
		},
	} {
		t.Run(c.folder+", "+c.name, func(t *testing.T) {
			ck := published(t, c.folder)
			c.damage(t, ck)
			dir := ck.write(t, t.TempDir())
			store := openStore(t)
			_, err := Create(t.Context(), store, modelName(t, "x"), from(dir), Options{})
			if !errors.Is(err, c.kind) {
				t.Fatalf("error %v, want %v", err, c.kind)
			}
			t.Log(err)
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %q, want one line that names the file", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want it to contain %q", err, w)
				}
			}
		})
	}
}
