package convert

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/convert/recipe"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

const (
	llamaF32  = "../testdata/models/llama-f32"
	llamaBF16 = "../testdata/models/llama-default"
)

func adapterLine(dir string) modelfile.Command {
	abs, err := filepath.Abs(dir)
	if err != nil {
		panic(err)
	}
	return modelfile.Command{Name: modelfile.Adapter, Value: abs, Line: 2}
}

func absolute(t *testing.T, dir string) string {
	t.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// values reads a tensor of a file as float32.
func values(t *testing.T, path, name string) []float32 {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tn, ok := f.Lookup(name)
	if !ok {
		t.Fatalf("%s has no %s", path, name)
	}
	buf := make([]byte, 4*tn.NumElements())
	if err := packed.PlainElements(safetensors.Source{Tensor: tn, File: f}).Floats(buf, 0, tn.NumElements()); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, tn.NumElements())
	for i := range out {
		out[i] = float32FromBytes(buf[4*i:])
	}
	return out
}

func float32FromBytes(b []byte) float32 {
	return math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

func layerOf(t *testing.T, s *store.Store, model, name string) string {
	t.Helper()
	l, ok := mustResolve(t, s, model).Image.Find(manifest.KindTensor, name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return s.BlobPath(l.Digest)
}

// The image equals PEFT's merge; all other tensors are unchanged.
func TestAdapterLikePEFT(t *testing.T) {
	for _, kind := range []string{"linear", "patterns"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join("../testdata/adapters", kind)
			store := openStore(t)
			r := mustCreate(t, store, "x", from(absolute(t, llamaF32), adapterLine(dir)), Options{HashFiles: true})
			want, err := safetensors.Open(filepath.Join(dir, "merged.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			changed := 0
			for _, l := range mustResolve(t, store, "x").Image.Layers {
				if l.Kind != manifest.KindTensor {
					continue
				}
				got := values(t, store.BlobPath(l.Digest), l.Name)
				_, merged := want.Lookup(l.Name)
				if !merged {
					if !slices.Equal(got, values(t, filepath.Join(llamaF32, "model.safetensors"), l.Name)) {
						t.Errorf("%s was changed", l.Name)
					}
					continue
				}
				changed++
				worst := 0.0
				for i, v := range values(t, want.Path(), l.Name) {
					worst = max(worst, math.Abs(float64(v-got[i])))
				}
				if worst > 1e-6 {
					t.Errorf("%s: off by %g", l.Name, worst)
				}
			}
			if n := len(want.Header().Tensors); changed != n || n == 0 {
				t.Errorf("%d tensors of %d", changed, n)
			}
			p := record(t, store, r)
			if len(p.Adapters) != 1 || len(p.Adapters[0].Merged) != changed || len(p.Adapters[0].Files) != 2 {
				t.Fatalf("the record has %+v", p.Adapters)
			}
			for _, f := range p.Adapters[0].Files {
				if data, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || hexSum(data) != f.SHA256 {
					t.Errorf("%+v, %v", f, err)
				}
			}
			i := slices.IndexFunc(p.Tensors,
				func(m provenance.MadeTensor) bool { return m.Name == "model.layers.0.self_attn.q_proj.weight" })
			if s := p.Tensors[i].Sources; len(s) != 3 || s[0].File != "model.safetensors" ||
				s[1].File != "adapter_model.safetensors" || len(s[2].SHA256) != 64 {
				t.Errorf("sources %+v", s)
			}
		})
	}
}

// A weight is rounded once, however it is divided into batches, and is the same from a folder and from an image.
func TestAdapterRoundsOnce(t *testing.T) {
	dir := "../testdata/adapters/linear"
	store := openStore(t)
	a := mustCreate(t, store, "a", from(absolute(t, llamaBF16), adapterLine(dir)), Options{})
	mustCreate(t, store, "base", from(absolute(t, llamaBF16)), Options{})
	if b := mustCreate(t, store, "b", from("base", adapterLine(dir)), Options{Parallel: 1}); b.Digest != a.Digest {
		t.Errorf("of the image it is %s, of the folder %s", b.Digest, a.Digest)
	}
	for _, name := range []string{"layers.0.self_attn.v_proj", "layers.1.mlp.down_proj"} {
		w := values(t, filepath.Join(llamaBF16, "model.safetensors"), "model."+name+".weight")
		file := filepath.Join(dir, "adapter_model.safetensors")
		fa, fb := values(t, file, "base_model.model.model."+name+".lora_A.weight"),
			values(t, file, "base_model.model.model."+name+".lora_B.weight")
		got := values(t, layerOf(t, store, "a", "model."+name+".weight"), "model."+name+".weight")
		const rank, scale = 4, 2.0
		cols := len(fa) / rank
		for i := range w {
			sum := 0.0
			for k := range rank {
				sum += float64(fb[i/cols*rank+k]) * float64(fa[k*cols+i%cols])
			}
			exact := float64(w[i]) + scale*sum
			_, exponent := math.Frexp(exact)
			if half := math.Ldexp(1, exponent-9); math.Abs(float64(got[i])-exact) > half+1e-6 {
				t.Fatalf("%s, element %d: %v, want %v", name, i, got[i], exact)
			}
		}
	}
}

func TestAdapters(t *testing.T) {
	dir := "../testdata/adapters/linear"
	store := openStore(t)
	mustCreate(t, store, "once", from(absolute(t, llamaF32), adapterLine(dir)), Options{})
	mustCreate(t, store, "twice", from(absolute(t, llamaF32), adapterLine(dir), adapterLine(dir)), Options{})
	const name = "model.layers.1.self_attn.q_proj.weight"
	w, once, twice := values(t, filepath.Join(llamaF32, "model.safetensors"), name),
		values(t, layerOf(t, store, "once", name), name), values(t, layerOf(t, store, "twice", name), name)
	for i := range w {
		if math.Abs(float64(once[i]-w[i]+once[i]-twice[i])) > 1e-6 {
			t.Fatalf("element %d: %v, %v, %v", i, w[i], once[i], twice[i])
		}
	}
	r := mustCreate(t, store, "small", from(absolute(t, llamaF32), adapterLine(dir)),
		Options{Precision: recipe.Precision{Type: quantize.Int8}})
	p := record(t, store, r)
	i := slices.IndexFunc(p.Tensors, func(m provenance.MadeTensor) bool { return m.Name == name })
	if got := p.Tensors[i]; got.Type != "int8" || !strings.Contains(got.Rule, "adapter") {
		t.Errorf("%+v", got)
	}
}

// A run's key depends on the adapters and their scales, so that no run resumes another's blobs.
func TestAdapterKey(t *testing.T) {
	dir := t.TempDir()
	copyAdapter(t, dir, func(map[string]any) {})
	seen := map[string]bool{}
	for _, edit := range []func(){
		func() {},
		func() { copyAdapter(t, dir, func(c map[string]any) { c["lora_alpha"] = 9 }) },
		func() { dir = filepath.Join("../testdata/adapters/patterns") },
	} {
		edit()
		p, err := prepare(t.Context(), nil, from(absolute(t, llamaF32), adapterLine(dir)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		key, err := p.plan.Key()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(p.plan.Recognized)
		if seen[string(key)] || !strings.Contains(string(text), "LoRA of rank ") {
			t.Errorf("key %s, recognized %s", key, text)
		}
		seen[string(key)] = true
		p.close()
	}
}

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
		"lora_alpha":        {"x", "cannot unmarshal string"},
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
		if err := os.Rename(filepath.Join(dir, "adapter_model.safetensors"),
			filepath.Join(dir, "adapter_model.bin")); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, llamaF32, dir, "PyTorch pickle")
	})
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
	inv, err := source.Open(base)
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
	t.Run("not finite", func(t *testing.T) {
		a, b := f32(q+".lora_A.weight", 2, 64), f32(q+".lora_B.weight", 64, 2)
		a.data = make([]byte, a.Size())
		copy(a.data[4:], []byte{0, 0, 0xc0, 0x7f})
		store := openStore(t)
		_, err := Create(t.Context(), store, modelName(t, "x"), from(absolute(t, llamaF32), adapterLine(writeLoRA(t, a, b))),
			Options{})
		if err == nil || !strings.Contains(err.Error(), "lora_A.weight") && !strings.Contains(err.Error(), "q_proj") {
			t.Errorf("error %v", err)
		}
		if got := finished(t, store); len(got) > 0 {
			t.Errorf("left %q", got)
		}
	})
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
