package convert

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// copyAdapter writes the linear adapter with an edited configuration.
func copyAdapter(t *testing.T, dir string, edit func(map[string]any)) {
	t.Helper()
	var c map[string]any
	data, err := os.ReadFile("../testdata/adapters/linear/adapter_config.json")
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	edit(c)
	data, _ = json.Marshal(c)
	writeFile(t, filepath.Join(dir, "adapter_config.json"), data)
	if data, err = os.ReadFile("../testdata/adapters/linear/adapter_model.safetensors"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "adapter_model.safetensors"), data)
}

func TestAdapterRefused(t *testing.T) {
	for key, c := range map[string]struct {
		value any
		want  string
	}{
		"use_dora":          {true, "use_dora is set: DoRA cannot be merged"},
		"fan_in_fan_out":    {true, "fan_in_fan_out is set: transposed weights cannot be merged"},
		"peft_type":         {"IA3", `peft_type is "IA3": only LORA`},
		"init_lora_weights": {"pissa_niter_4", "which also changes the base model's weights"},
		"something_new":     {1, "something_new is set: an unknown feature cannot be merged"},
		"r": {5,
			"lora_A.weight: cannot import: its shape is [4 128], but its rank in adapter_config.json (r, rank_pattern) is 5"},
		"lora_alpha":        {"x", "lora_alpha: a JSON string, want a number"},
		"rank_pattern":      {map[string]any{"q_proj": 0}, "its rank is 0"},
		"alpha_pattern":     {map[string]any{"(": 1}, `pattern "("`},
		"bias":              {"some", "bias is"},
		"target_parameters": {[]string{"a"}, "target_parameters is set"},
	} {
		t.Run(key, func(t *testing.T) {
			dir := t.TempDir()
			copyAdapter(t, dir, func(m map[string]any) { m[key] = c.value })
			checkRefused(t, llamaF32, dir, c.want)
		})
	}
	t.Run("no config", func(t *testing.T) { checkRefused(t, llamaF32, t.TempDir(), ": no adapter_config.json") })
	t.Run("mlx-lm", func(t *testing.T) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "adapter_config.json"), []byte(`{"fine_tune_type": "lora"}`))
		checkRefused(t, llamaF32, dir, "mlx-lm's fuse command")
	})
	t.Run("pickle", func(t *testing.T) {
		dir := t.TempDir()
		copyAdapter(t, dir, func(map[string]any) {})
		if err := os.Remove(filepath.Join(dir, "adapter_model.safetensors")); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "adapter_model.bin"), []byte("\x80\x02}q\x00"))
		checkRefused(t, llamaF32, dir, "adapter_model.bin is a PyTorch pickle")
	})
	for name, c := range map[string]struct{ content, want string }{
		"adapter_model.bin":         {pointerTo, "adapter_model.bin: cannot import: it is a Git LFS pointer"},
		"adapter_model.safetensors": {pointerTo, "adapter_model.safetensors: invalid header: it is a Git LFS pointer"},
		"adapter_config.json":       {pointerTo, "adapter_config.json: cannot import: it is a Git LFS pointer"},
	} {
		t.Run("pointer as "+name, func(t *testing.T) {
			dir := t.TempDir()
			copyAdapter(t, dir, func(map[string]any) {})
			if err := os.Remove(filepath.Join(dir, "adapter_model.safetensors")); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, name), []byte(c.content))
			checkRefused(t, llamaF32, dir, c.want)
		})
	}
	t.Run("cut off", func(t *testing.T) {
		dir := t.TempDir()
		copyAdapter(t, dir, func(map[string]any) {})
		if err := os.Truncate(filepath.Join(dir, "adapter_model.safetensors"), 5000); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, llamaF32, dir, "adapter_model.safetensors: ")
	})
	t.Run("packed", func(t *testing.T) {
		checkRefused(t, "../testdata/sources/packed-int4", loraFor(t, "../testdata/sources/packed-int4"),
			"an adapter is merged into it; ask for a type")
	})
}

// checkRefused expects an error of one line with the position in the Modelfile, and an empty store.
func checkRefused(t *testing.T, base, dir, want string) {
	t.Helper()
	store := openStore(t)
	_, err := Create(t.Context(), store, modelName(t, "x"), from(absolute(t, base), adapterLine(dir)), Options{})
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %s", err, want)
	}
	if got := contents(t, store); len(got) > 0 {
		t.Errorf("left %q", got)
	}
}

// loraFor makes an adapter for the first layer's query projection.
func loraFor(t *testing.T, base string) string {
	t.Helper()
	inv, err := source.Open(base, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inv.Close()
	const module = "model.layers.0.self_attn.q_proj"
	w, err := inv.Lookup(module + ".weight")
	if err != nil {
		t.Fatal(err)
	}
	return writeLoRA(t, tensor{Tensor: safetensors.Tensor{Name: "base_model.model." + module + ".lora_A.weight",
		DType: safetensors.F32, Shape: []int64{2, w.Shape[1]}}},
		tensor{Tensor: safetensors.Tensor{Name: "base_model.model." + module + ".lora_B.weight", DType: safetensors.F32,
			Shape: []int64{w.Shape[0], 2}}})
}

// writeLoRA writes an adapter of rank 2. Tensors without data are zero.
func writeLoRA(t *testing.T, list ...tensor) string {
	t.Helper()
	for i := range list {
		if list[i].data == nil {
			list[i].data = make([]byte, list[i].Size())
		}
	}
	c := &checkpoint{files: map[string]string{"adapter_config.json": `{"peft_type": "LORA", "r": 2, "lora_alpha": 2}`},
		tensors: map[string][]tensor{"adapter_model.safetensors": list}}
	return c.write(t, t.TempDir())
}

func f32(name string, shape ...int64) tensor {
	return tensor{Tensor: safetensors.Tensor{Name: "base_model.model." + name, DType: safetensors.F32, Shape: shape}}
}

// Each error names the tensor, the problem and a remedy.
func TestAdapterTensors(t *testing.T) {
	const q = "model.layers.0.self_attn.q_proj"
	for name, c := range map[string]struct {
		list []tensor
		want string
	}{
		"no B": {[]tensor{f32(q+".lora_A.weight", 2, 64)}, "there is no lora_B of " + q},
		"no A": {[]tensor{f32(q+".lora_B.weight", 64, 2)}, "there is no lora_A of " + q},
		"rank": {[]tensor{f32(q+".lora_A.weight", 2, 64), f32(q+".lora_B.weight", 64, 3)},
			"its shape is [64 3], but its rank"},
		"shape": {[]tensor{f32(q+".lora_A.weight", 2, 32), f32(q+".lora_B.weight", 64, 2)},
			"it changes a weight of shape [64 32], but " + q + ".weight has shape [64 64]"},
		"convolution": {[]tensor{f32(q+".lora_A.weight", 2, 64, 1), f32(q+".lora_B.weight", 64, 2, 1)},
			"only adapters of linear layers"},
		"other model": {[]tensor{f32("model.layers.9.self_attn.q_proj.lora_A.weight", 2, 64),
			f32("model.layers.9.self_attn.q_proj.lora_B.weight", 64, 2)}, "it is an adapter of another model"},
		"embedding": {[]tensor{f32("model.embed_tokens.lora_embedding_A", 2, 384)},
			"the adapter of an embedding cannot be merged"},
		"DoRA":      {[]tensor{f32(q+".lora_magnitude_vector", 64)}, "DoRA cannot be merged"},
		"bias of B": {[]tensor{f32(q+".lora_B.bias", 64)}, "unknown kind of LoRA tensor"},
		"whole":     {[]tensor{f32("model.norm.weight", 65)}, "it is [65], but model.norm.weight is [64]"},
		"both": {[]tensor{f32(q+".lora_A.weight", 2, 64), f32(q+".lora_B.weight", 64, 2), f32(q+".weight", 64, 64)},
			"which an adapter has already changed"},
		"nothing": {nil, "it holds no tensors"},
		"other prefix": {[]tensor{{Tensor: safetensors.Tensor{Name: "x", DType: safetensors.F32, Shape: []int64{1}}}},
			"base_model.model."},
	} {
		t.Run(name, func(t *testing.T) { checkRefused(t, llamaF32, writeLoRA(t, c.list...), c.want) })
	}
}

// Numbers that are not finite, or whose product is not, are an error of the adapter's tensor, whatever the type of the
// image's weight, and leave nothing in the store.
func TestAdapterNotFinite(t *testing.T) {
	const q, norm = "model.layers.0.self_attn.q_proj", "model.norm.weight"
	infinity, nan, large := []byte{0, 0, 0x80, 0x7f}, []byte{0, 0, 0xc0, 0xff}, []byte{0, 0, 0x80, 0x7e}
	for name, c := range map[string]struct {
		a, b, whole []byte // of the second element
		want        string
	}{
		"A":        {nan, nil, nil, q + ".lora_A.weight: cannot import: element 1 is NaN"},
		"B":        {nil, infinity, nil, q + ".lora_B.weight: cannot import: element 1 is +Inf"},
		"both":     {nan, infinity, nil, q + ".lora_B.weight: cannot import: element 1 is +Inf"},
		"product":  {large, large, nil, q + ".lora_A.weight: cannot import: with lora_B and the scale 1 it adds"},
		"replaced": {nil, nil, nan, norm + ".modules_to_save.default.weight: cannot import: element 1 is NaN"},
	} {
		for base, precision := range map[string]recipe.Precision{
			llamaF32: {}, llamaBF16: {}, "../testdata/models/llama-f16": {Type: quantize.Int8},
		} {
			var list []tensor
			set := func(data []byte, name string, shape ...int64) {
				x := f32(name, shape...)
				x.data = make([]byte, x.Size())
				copy(x.data[4:], data)
				list = append(list, x)
			}
			src := openModel(t, base)
			w, err := src.Lookup(q + ".weight")
			if err != nil {
				t.Fatal(err)
			}
			set(c.a, q+".lora_A.weight", 2, w.Shape[1])
			set(c.b, q+".lora_B.weight", w.Shape[0], 2)
			if name == "product" {
				list[0].data = bytes.Repeat(large, int(2*w.Shape[1]))
			}
			if c.whole != nil {
				saved := strings.Replace(norm, ".weight", ".modules_to_save.default.weight", 1)
				c.want = "base_model.model." + saved + ": cannot import: element 1 is NaN"
				set(c.whole, saved, w.Shape[1])
			}
			store := openStore(t)
			_, err = Create(t.Context(), store, modelName(t, "x"),
				from(absolute(t, base), adapterLine(writeLoRA(t, list...))), Options{Precision: precision})
			if err == nil || !strings.Contains(err.Error(), "adapter_model.safetensors: tensor base_model.model.") ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: error %v, want %s", name, base, err, c.want)
			}
			if got := contents(t, store); len(got) > 0 {
				t.Errorf("%s, %s: left %q", name, base, got)
			}
		}
	}
}

// An adapter is merged into a packed weight if a type is requested, and finds the tensor under another prefix.
func TestAdapterOfPacked(t *testing.T) {
	base := "../testdata/sources/packed-int4"
	store := openStore(t)
	mustCreate(t, store, "x", from(absolute(t, base), adapterLine(loraFor(t, base))),
		Options{Precision: recipe.Precision{Type: quantize.Int8}})
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := random(rng, "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight", safetensors.BF16,
		2, 64), f32("model.language_model.layers.0.self_attn.q_proj.lora_B.weight", 64, 2)
	for i := 1; i < len(a.data); i += 2 {
		a.data[i] &= 0xbf // keep it finite
	}
	r := mustCreate(t, store, "y", from(absolute(t, llamaF32), adapterLine(writeLoRA(t, a, b))), Options{})
	if m := record(t, store, r).Adapters[0].Merged; len(m) != 1 || m[0].Name != "model.layers.0.self_attn.q_proj.weight" {
		t.Errorf("merged %+v", m)
	}
}
