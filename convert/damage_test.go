package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/tokenizer"
)

// Damage is reported in one line that names the file, and the tensor if there is one, and leaves nothing in the store.
func TestDamage(t *testing.T) {
	const (
		norm   = "model.layers.1.input_layernorm.weight"
		shard1 = "model-00001-of-00002.safetensors"
		shard2 = "model-00002-of-00002.safetensors"
	)
	shardOf := func(c *checkpoint, name string) string {
		for file, list := range c.tensors {
			for _, tn := range list {
				if tn.Name == name {
					return file
				}
			}
		}
		return ""
	}
	for _, d := range []struct {
		name   string
		shards int
		damage func(*testing.T, *checkpoint)
		after  func(t *testing.T, dir string) // applied to the written files
		kind   error
		want   []string
	}{
		{
			"missing shard", 2, nil, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, shard2)) },
			safetensors.ErrIncomplete, []string{shard2},
		},
		{
			"truncated shard", 2, nil, func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, shard1), 8000) },
			safetensors.ErrTruncated, []string{shard1},
		},
		{
			"truncated file", 0, nil,
			func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), 8000) },
			safetensors.ErrTruncated, []string{"model.safetensors"},
		},
		{
			"truncated header", 0, nil,
			func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "model.safetensors"), 100) }, nil,
			[]string{"model.safetensors"},
		},
		{
			"empty shard", 2, nil, func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, shard1), 0) }, nil,
			[]string{shard1},
		},
		{"no weights", 0, func(_ *testing.T, c *checkpoint) { c.tensors = nil }, nil, safetensors.ErrNoWeights, nil},
		{
			"tensor missing from its shard", 2, func(_ *testing.T, c *checkpoint) { c.drop(norm) }, nil,
			safetensors.ErrIncomplete, []string{".safetensors: tensor", norm},
		},
		{
			"tensor missing", 0, func(_ *testing.T, c *checkpoint) { c.drop(norm) }, nil, table.ErrMismatch,
			[]string{"model.safetensors: tensor " + norm + ": absent"},
		},
		{"wrong shape", 0, func(_ *testing.T, c *checkpoint) {
			c.edit(norm, func(tn *tensor) { tn.Shape, tn.data = []int64{16}, tn.data[:32] })
		}, nil, table.ErrMismatch, []string{
			"model.safetensors: tensor " + norm + ": wrong shape: has shape [16], want [32]",
		}},
		{"wrong shape in a shard", 2, func(_ *testing.T, c *checkpoint) {
			c.edit(norm, func(tn *tensor) { tn.Shape = []int64{32, 1} })
		}, nil, table.ErrMismatch, []string{".safetensors: tensor " + norm + ": wrong shape: has shape [32 1], want [32]"}},
		{"transposed", 0, func(_ *testing.T, c *checkpoint) {
			c.edit("model.layers.0.mlp.up_proj.weight", func(tn *tensor) { tn.Shape = []int64{32, 48} })
		}, nil, table.ErrMismatch,
			[]string{"model.safetensors: tensor model.layers.0.mlp.up_proj.weight: wrong shape: has shape [32 48], " +
				"want [48 32]"}},
		{"wrong type", 0, func(_ *testing.T, c *checkpoint) {
			c.edit(norm, func(tn *tensor) { tn.DType = safetensors.I16 })
		}, nil, table.ErrMismatch, []string{"model.safetensors: tensor " + norm + ": wrong type: has type I16"}},
		{"tensor too many", 0, func(_ *testing.T, c *checkpoint) {
			tn := c.tensors["model.safetensors"][1]
			tn.Name = "mtp.norm.weight"
			c.add("model.safetensors", tn)
		}, nil, table.ErrMismatch, []string{"model.safetensors: tensor mtp.norm.weight: unknown"}},
		{
			"unknown architecture", 0, data(`"llama"`, `"rwkv"`), nil, arch.ErrUnknownArchitecture,
			[]string{source.ConfigName, `"rwkv"`, "known types", "its tensors have the names and shapes of llama"},
		},
		{
			"unknown class", 0, data("LlamaForCausalLM", "LlamaForTokenClassification"), nil, arch.ErrUnknownArchitecture,
			[]string{source.ConfigName, "LlamaForTokenClassification"},
		},
		{
			"no config.json", 0, func(_ *testing.T, c *checkpoint) { delete(c.files, source.ConfigName) }, nil, source.ErrSource,
			[]string{"no config.json"},
		},
		{"image generation", 0, func(_ *testing.T, c *checkpoint) {
			delete(c.files, source.ConfigName)
			c.files["model_index.json"] = "{}"
		}, nil, source.ErrSource, []string{"image-generation model"}},
		{
			"broken config.json", 0, data(`"vocab_size": 300,`, `"vocab_size": 300`), nil, config.ErrBad,
			[]string{source.ConfigName + ": line 2: "},
		},
		{
			"empty config.json", 0, func(_ *testing.T, c *checkpoint) { c.files[source.ConfigName] = "" }, nil, source.ErrSource,
			[]string{source.ConfigName, "it is empty; download it again"},
		},
		{
			"bad value in config.json", 0, data(`"num_key_value_heads": 2`, `"num_key_value_heads": 3`), nil, config.ErrBad,
			[]string{source.ConfigName + ": num_key_value_heads = 3: must divide"},
		},
		{
			"quantized", 0, func(t *testing.T, c *checkpoint) {
				data(`"torch_dtype"`, `"quantization_config": {"quant_method": "aqlm"}, "torch_dtype"`)(t, c)
				c.edit("model.layers.0.mlp.up_proj.weight", func(tn *tensor) {
					tn.Name, tn.DType = "model.layers.0.mlp.up_proj.codes", safetensors.I16
				})
			}, nil, source.ErrSource, []string{source.ConfigName, `quant_method = "aqlm": it is packed by AQLM`},
		},
		{
			"broken index", 2,
			func(_ *testing.T, c *checkpoint) { c.files[source.IndexName] = c.files[source.IndexName][:50] }, nil,
			safetensors.ErrIndex, []string{source.IndexName},
		},
		{
			"broken generation_config.json", 0, file("generation_config.json", "{\n\"a\":\n}"), nil, source.ErrSource,
			[]string{"generation_config.json: ", "line 3: "},
		},
		{
			"non-UTF-8 tokenizer", 0, file("tokenizer.json", "{\"model\":\n\"\xff\"}"), nil, source.ErrSource,
			[]string{"tokenizer.json: ", "not UTF-8 at byte 11, line 2"},
		},
		{"broken tokenizer", 0, file("tokenizer.json", `{"model": `), nil, source.ErrSource, []string{"tokenizer.json: "}},
		{
			"tokenizer without a model", 0, file("tokenizer.json", `{"version": "1.0"}`), nil, tokenizer.ErrInvalid,
			[]string{"tokenizer.json: there is no model"},
		},
		{
			"unsupported tokenizer", 0, file("tokenizer.json", `{"version": "1.0", "model": {"type": "Guess", "vocab": {}}}`),
			nil, tokenizer.ErrUnsupported, []string{"tokenizer.json: ", "Guess"},
		},
		{"bad tokenizer_config.json", 0, func(_ *testing.T, c *checkpoint) {
			c.files["tokenizer.json"], c.files["tokenizer_config.json"] = tinyTokenizer, "[]"
		}, nil, tokenizer.ErrInvalid, []string{"tokenizer_config.json: "}},
		{
			"non-UTF-8 tokenizer_config.json", 0, file("tokenizer_config.json", "{\"a\":\"\xe9\"}"), nil, source.ErrSource,
			[]string{"tokenizer_config.json: ", "not UTF-8 at byte 6"},
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			c := tiny(t, tinyConfig, 1)
			if d.shards > 0 {
				c.shard(d.shards)
			}
			want := d.want
			if d.name == "wrong shape in a shard" {
				want = append(want, shardOf(c, norm))
			}
			if d.damage != nil {
				d.damage(t, c)
			}
			dir := c.write(t, t.TempDir())
			if d.after != nil {
				d.after(t, dir)
			}
			store := openStore(t)
			_, err := Create(t.Context(), store, modelName(t, "x"), from(dir), Options{})
			if err == nil || (d.kind != nil && !errors.Is(err, d.kind)) {
				t.Fatalf("error %v, want %v", err, d.kind)
			}
			t.Log(err)
			if !strings.HasPrefix(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line that starts with the folder", err)
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want it to contain %q", err, w)
				}
			}
			if left := contents(t, store); len(left) != 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func data(from, to string) func(*testing.T, *checkpoint) {
	return func(t *testing.T, c *checkpoint) {
		t.Helper()
		text := strings.Replace(c.files[source.ConfigName], from, to, 1)
		if text == c.files[source.ConfigName] {
			t.Fatalf("the configuration has no %q", from)
		}
		c.files[source.ConfigName] = text
	}
}

func file(name, text string) func(*testing.T, *checkpoint) {
	return func(_ *testing.T, c *checkpoint) { c.files[name] = text }
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
