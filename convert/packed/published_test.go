package packed

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// folder is a checkpoint that a test modifies.
type folder struct {
	config  map[string]any
	tensors map[string]*held
}

type held struct {
	safetensors.Tensor
	data []byte
}

func load(t *testing.T, name string) *folder {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "sources", name)
	f := &folder{tensors: map[string]*held{}}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &f.config); err != nil {
		t.Fatal(err)
	}
	c, err := safetensors.OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range c.Tensors() {
		data, err := io.ReadAll(s.Reader())
		if err != nil {
			t.Fatal(err)
		}
		f.tensors[s.Name] = &held{s.Tensor, data}
	}
	return f
}

// quantization returns a part of the configuration.
func (f *folder) quantization(path ...string) map[string]any {
	at := f.config["quantization_config"].(map[string]any)
	for _, key := range path {
		at = at[key].(map[string]any)
	}
	return at
}

// read writes the folder and reads its weights.
func (f *folder) read(t *testing.T) (Result, error) {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(f.config)
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	var data [][]byte
	for _, h := range f.tensors {
		list, data = append(list, h.Tensor), append(data, h.data)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil, func(i int) (io.Reader,
		error) {
		return bytes.NewReader(data[i]), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := safetensors.OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return Read(NewCheckpoint(safetensors.Dir(dir), config, c.Tensors()))
}

// Each kind's codes and floats agree, in all valid batches.
func TestPublishedCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		want quantize.Type // 0 = no format represents the codes
		wide bool          // scales become float32
	}{
		{"gptq", quantize.Int4.WithGroup(32), true},
		{"gptq-v2", quantize.Int4, false},
		{"gptq-desc-act", 0, false},
		{"gptq-8bit", quantize.Int8, false},
		{"gptq-3bit", quantize.Int3, false},
		{"gptq-auto-round", quantize.Int4.WithGroup(32), true},
		{"awq", quantize.Int4, true},
		{"packed-int4", quantize.Int4.WithGroup(32), false},
		{"packed-int4-zeros", quantize.Int4, true},
		{"packed-int8", quantize.Int8, false},
		{"packed-actorder", 0, false},
		{"int8", quantize.Int8, false},
		{"nvfp4", quantize.NVFP4, false},
		{"nvfp4-modelopt", quantize.NVFP4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := load(t, c.name).read(t)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Weights) != 14 || len(r.Recognized) != 1 || len(r.Recognized[0].From) < 2 {
				t.Errorf("%d weights, recognized %+v", len(r.Weights), r.Recognized)
			}
			for _, w := range r.Weights {
				want := c.want
				if want == quantize.Int8 && w.Shape[1] == 128 { // one scale per row
					want = want.WithGroup(128)
				}
				if w.Type != want || (w.Type == 0) != (w.Why != "") || w.Plain || (w.Scales == safetensors.F32) != c.wide {
					t.Errorf("%s: type %s (%s), scales %q", w.Name, w.Type, w.Why, w.Scales)
				}
				checkBatches(t, w)
			}
		})
	}
}

// checkBatches reads a weight whole, by rows and by parts of rows, as floats and as codes.
func checkBatches(t *testing.T, w Weight) {
	t.Helper()
	n, columns := numbers.Count(w.Shape), w.Shape[len(w.Shape)-1]
	whole := make([]byte, 4*n)
	if err := w.Read.Floats(whole, 0, n); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{columns, 3 * columns, 32} {
		if w.Type != 0 && step%int64(w.Type.Group()) != 0 {
			continue
		}
		for begin := int64(0); begin < n; begin += step {
			count := min(step, n-begin)
			part := make([]byte, 4*count)
			if err := w.Read.Floats(part, begin, count); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(part, whole[4*begin:4*(begin+count)]) {
				t.Fatalf("%s: elements from %d on differ", w.Name, begin)
			}
			if w.Type != 0 {
				checkCodes(t, w, whole, begin, count)
			}
		}
	}
}

// checkCodes decodes codes in float32. It allows one rounding of code*scale and one of the sum.
func checkCodes(t *testing.T, w Weight, whole []byte, begin, count int64) {
	t.Helper()
	d := quantize.DType(w.DType)
	if w.Scales != "" {
		d = quantize.DType(w.Scales)
	}
	size, groups := w.Type.GroupSizes(d), int(count)/w.Type.Group()
	b := quantize.Blocks{Packed: make([]byte, groups*size.Packed), Scales: make([]byte, groups*size.Scales),
		Biases: make([]byte, groups*size.Biases)}
	if err := w.Read.Codes(b, begin, count); err != nil {
		t.Fatal(err)
	}
	if size.Biases > 0 {
		for _, p := range []*[]byte{&b.Scales, &b.Biases} {
			wide := make([]byte, 4*groups)
			if err := quantize.Cast(wide, quantize.F32, *p, d); err != nil {
				t.Fatal(err)
			}
			*p = wide
		}
	}
	got := make([]byte, 4*count)
	if err := w.Type.Decode(got, quantize.F32, b, quantize.F32); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		v := math.Float32frombits(le.Uint32(got[4*i:]))
		if w.Global != 0 {
			v *= w.Global
		}
		if f := math.Float32frombits(le.Uint32(whole[4*(begin+i):])); math.Abs(float64(v-f)) > 2e-6 {
			t.Fatalf("%s: element %d is %v as a code, %v as a number", w.Name, begin+i, v, f)
		}
	}
}

// Damage is one error that names it.
func TestPublishedDamage(t *testing.T) {
	const layer = "model.layers.1.mlp.up_proj"
	drop := func(part string) func(*folder) { return func(f *folder) { delete(f.tensors, layer+part) } }
	reshape := func(part string, shape ...int64) func(*folder) {
		return func(f *folder) {
			h := f.tensors[layer+part]
			h.Shape = shape
			h.data = append([]byte{}, make([]byte, h.Size())...)
		}
	}
	config := func(key string, value any, path ...string) func(*folder) {
		return func(f *folder) { f.quantization(path...)[key] = value }
	}
	weights := []string{"config_groups", "group_0", "weights"}
	for _, c := range []struct {
		name, source string
		damage       func(*folder)
		want         []string
	}{
		{"gptq without scales", "gptq", drop(".scales"), []string{layer + ".qweight", ".scales is missing"}},
		{"gptq without zeros", "gptq", drop(".qzeros"), []string{layer + ".qweight", ".qzeros is missing"}},
		{"gptq of another group", "gptq", config("group_size", 128), []string{".scales: cannot import", "group_size = 128"}},
		{
			"gptq of other bits", "gptq", config("bits", 8),
			[]string{".qzeros: cannot import", "means 4 bits, but", "bits is 8"},
		},
		{"gptq of impossible bits", "gptq", func(f *folder) {
			config("bits", 7)(f)
			for name, h := range f.tensors {
				if strings.HasSuffix(name, ".qzeros") {
					h.Shape = []int64{h.Shape[0], h.Shape[1] / 4 * 7}
					h.data = make([]byte, h.Size())
				}
			}
		}, []string{"codes have 7 bits, want 2 to 6 or 8"}},
		{
			"gptq of a wrong index", "gptq", func(f *folder) { f.tensors[layer+".g_idx"].data[0] = 99 },
			[]string{layer + ".g_idx", "column 0 is in group 99"},
		},
		{"gptq of a short index", "gptq", reshape(".g_idx", 3), []string{layer + ".g_idx", "64 columns are I32 [64]"}},
		{"gptq of a wrong shape", "gptq", reshape(".qweight", 8, 128, 1), []string{layer + ".qweight", "want a matrix"}},
		{"gptq for kernels", "gptq", config("checkpoint_format", "marlin"), []string{"quantization_config", `"marlin"`}},
		{"gptq called awq", "gptq", config("quant_method", "awq"), []string{".qweight", `quant_method is "awq"`}},
		{"awq without scales", "awq", drop(".scales"), []string{layer + ".qweight", ".scales is missing"}},
		{"awq without zeros", "awq", drop(".qzeros"), []string{layer + ".qweight", ".qzeros is missing"}},
		{"awq of another group", "awq", config("group_size", 32), []string{".scales: cannot import", "group_size = 32"}},
		{"awq for kernels", "awq", config("version", "gemv"), []string{"version", `"gemv"`}},
		{
			"packed without scales", "packed-int4", drop(".weight_scale"),
			[]string{layer + ".weight_packed", ".weight_scale is missing"},
		},
		{
			"packed without shape", "packed-int4", drop(".weight_shape"),
			[]string{layer + ".weight_packed", ".weight_shape is missing"},
		},
		{
			"packed of another group", "packed-int4", config("group_size", 128, weights...),
			[]string{".weight_scale: cannot import", "group_size"},
		},
		{
			"packed of other bits", "packed-int4", config("num_bits", 8, weights...),
			[]string{".weight_packed: cannot import", "4 bits", "num_bits [8]"},
		},
		{
			"packed of wrong zeros", "packed-int4-zeros", reshape(".weight_zero_point", 3, 1),
			[]string{layer + ".weight_zero_point", "want I32"},
		},
		{
			"packed of a wrong shape", "packed-int4", func(f *folder) { f.tensors[layer+".weight_shape"].data[8]++ },
			[]string{layer},
		},
		{"int8 without scales", "int8", drop(".weight_scale"), []string{layer + ".weight", ".weight_scale is missing"}},
		{
			"nvfp4 without scales", "nvfp4", drop(".weight_scale"),
			[]string{layer + ".weight_packed", ".weight_scale is missing"},
		},
		{
			"nvfp4 without global scale", "nvfp4", drop(".weight_global_scale"),
			[]string{layer + ".weight_packed", ".weight_global_scale, its scale of the whole tensor, is missing"},
		},
		{
			"nvfp4 of another group", "nvfp4", reshape(".weight_scale", 128, 2),
			[]string{layer + ".weight_scale", "has shape [128 2]"},
		},
		{
			"nvfp4 with a global scale of zero", "nvfp4-modelopt",
			func(f *folder) { clear(f.tensors[layer+".weight_scale_2"].data) },
			[]string{layer + ".weight_scale_2", "want a positive number"},
		},
		{
			"modelopt without global scale", "nvfp4-modelopt", drop(".weight_scale_2"),
			[]string{layer + ".weight", ".weight_scale_2, its scale of the whole tensor, is missing"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := load(t, c.source)
			c.damage(f)
			_, err := f.read(t)
			if !errors.Is(err, ErrSource) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
		})
	}
}
