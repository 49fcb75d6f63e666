package convert

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
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
				s[1].File != "adapter_model.safetensors" || len(s[2].BLAKE3) != 64 {
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
