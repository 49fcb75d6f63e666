package packed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// modules are the checkpoints whose weights the package that made them has dequantized.
func modules(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range published(t) {
		if _, err := os.Stat(filepath.Join("..", "..", "testdata", "sources", name, "dequantized.json")); err == nil {
			names = append(names, name)
		}
	}
	if len(names) < 7 {
		t.Fatalf("%d checkpoints: %v", len(names), names)
	}
	return names
}

// Elements equal those of bitsandbytes, transformers' BitNet and HQQ, bit for bit.
func TestModules(t *testing.T) {
	for _, name := range modules(t) {
		var want struct {
			DType  quantize.DType
			SHA256 map[string]string
		}
		if err := json.Unmarshal([]byte(text(t, "testdata", "sources", name, "dequantized.json")), &want); err != nil {
			t.Fatal(err)
		}
		r, err := load(t, name).read(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Weights {
			if want.SHA256[w.Name] != digestOf(t, w, want.DType) {
				t.Errorf("%s: %s (%s) has other elements", name, w.Name, w.Format)
			}
		}
		if len(r.Weights) != 14 || len(want.SHA256) != 14 || len(r.Recognized) != 1 {
			t.Errorf("%s: %d weights, recognized %+v", name, len(r.Weights), r.Recognized)
		}
	}
}

func digestOf(t *testing.T, w Weight, d quantize.DType) string {
	t.Helper()
	n := numbers.Count(w.Shape)
	wide := make([]byte, 4*n)
	if err := w.Read.Floats(wide, 0, n); err != nil {
		t.Fatal(err)
	}
	for i := range int(n) { // equal numbers of other signs
		if le.Uint32(wide[4*i:]) == 1<<31 {
			le.PutUint32(wide[4*i:], 0)
		}
	}
	narrow := make([]byte, int(n)*d.Size())
	if err := quantize.Cast(narrow, d, wide, quantize.F32); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(narrow)
	return hex.EncodeToString(sum[:])
}

// Codes are kept where a type has them.
func TestModulesTypes(t *testing.T) {
	int2, int8 := quantize.Int2.WithGroup(128), quantize.Int8.WithGroup(128)
	for name, want := range map[string]map[quantize.Type]int{
		"bnb-nf4":   {0: 14},
		"bnb-fp4":   {0: 14},
		"bnb-int8":  {quantize.Int8: 12, int8: 2},
		"bitnet":    {quantize.Int2: 12, int2: 2},
		"hqq":       {quantize.Int8: 2, quantize.Int2: 2, quantize.Int3: 2, quantize.Int5: 2, quantize.Int4: 6},
		"hqq-axis0": {0: 14},
	} {
		r, err := load(t, name).read(t)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[quantize.Type]int{}
		for _, w := range r.Weights {
			kinds[w.Type]++
			if (w.Type == 0) != w.Plain || (w.Type != 0) != (w.Scales == safetensors.F32) || (w.Type == 0) != (w.Why != "") {
				t.Errorf("%s: %s: %s, plain %v, scales %q, why %q", name, w.Name, w.Type, w.Plain, w.Scales, w.Why)
			}
			checkBatches(t, w)
		}
		for kind, n := range want {
			if kinds[kind] != n {
				t.Errorf("%s: %v, want %v", name, kinds, want)
			}
		}
		if notes := len(r.Notes); notes != map[bool]int{true: 1}[strings.HasPrefix(name, "bitnet")] {
			t.Errorf("%s: notes %v", name, r.Notes)
		}
	}
}

// Without the configuration's help, the tensors alone tell what they are.
func TestModulesWithoutConfig(t *testing.T) {
	for _, name := range modules(t) {
		f := load(t, name)
		want := elementsOf(t, load(t, name))
		delete(f.config, "quantization_config")
		if strings.HasPrefix(name, "bitnet") {
			if _, err := f.read(t); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "linear_class") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for weight, got := range elementsOf(t, f) {
			if string(got) != string(want[weight]) {
				t.Errorf("%s: %s has other elements", name, weight)
			}
		}
	}
}

func TestModulesDamage(t *testing.T) {
	const layer, state = "model.layers.1.mlp.up_proj", "model.layers.1.mlp.up_proj.weight.quant_state.bitsandbytes__"
	for _, c := range []struct {
		source string
		damage func(*folder)
		want   string
	}{
		{"bnb-nf4", func(f *folder) { delete(f.tensors, layer+".weight") }, layer + ".weight, which is missing"},
		{"bnb-nf4", func(f *folder) { delete(f.tensors, layer+".weight.absmax") }, layer + ".weight.absmax is missing"},
		{"bnb-nf4", func(f *folder) { delete(f.tensors, layer+".weight.nested_absmax") }, ".nested_absmax is missing"},
		{"bnb-nf4", func(f *folder) { delete(f.tensors, layer+".weight.nested_quant_map") }, ".nested_quant_map is missing"},
		{"bnb-nf4", func(f *folder) { delete(f.tensors, state+"nf4") },
			"quant_state.bitsandbytes__nf4 (or fp4) with their shape is missing"},
		{"bnb-nf4", func(f *folder) { f.tensors[state+"nf4"].data[0] = 'x' }, "not the JSON"},
		{"bnb-nf4", func(f *folder) { edit(f, state+"nf4", "128", "129") }, "the shape [129 64]"},
		{"bnb-nf4", func(f *folder) { edit(f, state+"nf4", "bfloat16", "bfloat17") }, `dtype "bfloat17"`},
		{"bnb-fp4", func(f *folder) { edit(f, state+"fp4", `ize": 64`, `ize": 32`) }, layer + ".weight.absmax"},
		{"bnb-fp4", func(f *folder) { move(f, state+"fp4", "fp4", "int4") }, `no type "int4"`},
		{"bnb-int8", func(f *folder) { delete(f.tensors, layer+".SCB") }, layer + ".SCB is missing"},
		{"bnb-int8", func(f *folder) { f.tensors[layer+".weight_format"].data[0] = 1 }, "order for one kernel (1,"},
		{"bitnet", func(f *folder) { delete(f.tensors, layer+".weight_scale") }, ".weight_scale, one number, is missing"},
		{"bitnet", func(f *folder) { clear(f.tensors[layer+".weight_scale"].data) }, "not finite"},
		{"bitnet", func(f *folder) { f.quantization()["linear_class"] = "x" }, `"x" is unknown`},
		{"bitnet", func(f *folder) { f.quantization()["use_rms_norm"] = true }, "use_rms_norm"},
		{"bitnet-auto", func(f *folder) { f.quantization()["quantization_mode"] = "online" }, "quantization_mode"},
		{"hqq", func(f *folder) { delete(f.tensors, layer+".scale") }, layer + ".scale is missing"},
		{"hqq", func(f *folder) { delete(f.tensors, layer+".nbits") }, layer + ".nbits is missing"},
		{"hqq", func(f *folder) { f.tensors[layer+".nbits"].data[0] = 7 }, "HQQ with 7 bits"},
		{"hqq", func(f *folder) { f.tensors[layer+".nbits"].data[0] = 8 }, "it has 4096 bytes, but 8192 codes of 8 bits"},
		{"hqq", func(f *folder) { f.tensors[layer+".group_size"].data[0] = 32 }, ".scale: cannot import: it is BF16"},
		{"hqq", func(f *folder) { f.tensors[layer+".quant_zero"].data[0] = 1 }, "quantized zero points"},
	} {
		f := load(t, c.source)
		c.damage(f)
		_, err := f.read(t)
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %s", c.source, err, c.want)
		}
	}
}

// edit replaces text in a tensor of bytes.
func edit(f *folder, name, old, to string) {
	h := f.tensors[name]
	h.data = []byte(strings.Replace(string(h.data), old, to, 1))
	h.Shape = []int64{int64(len(h.data))}
}

// move renames a tensor.
func move(f *folder, name, old, to string) {
	h := f.tensors[name]
	delete(f.tensors, name)
	h.Name = strings.Replace(name, old, to, 1)
	f.tensors[h.Name] = h
}
