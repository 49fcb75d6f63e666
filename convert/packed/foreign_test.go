package packed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed/foreign"
	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/safetensors"
)

// add adds a tensor of zeros.
func (f *folder) add(name string, d safetensors.DType, shape ...int64) {
	h := &held{Tensor: safetensors.Tensor{Name: name, DType: d, Shape: shape}}
	h.data = make([]byte, numbers.Count(shape)*int64(d.Bits())/8)
	f.tensors[name] = h
}

// plainFolder returns a folder without packed weights.
func plainFolder(t *testing.T) *folder {
	t.Helper()
	f := load(t, "packed-int4")
	delete(f.config, "quantization_config")
	for name := range f.tensors {
		if strings.Contains(name, ".weight_") {
			delete(f.tensors, name)
		}
	}
	return f
}

const foreignLayer = "model.layers.0.mlp.up_proj"

// Each packing that is not read is named by its tensors, whether config.json names it or not.
func TestForeignTensors(t *testing.T) {
	for _, c := range foreign.Packings {
		for _, method := range []string{"", "gptq", "bitsandbytes"} {
			for _, d := range []safetensors.DType{safetensors.I32, safetensors.U8} {
				f := plainFolder(t)
				f.add(foreignLayer+c.End, d, 16, 16)
				f.add(foreignLayer+c.Beside, safetensors.F16, 16)
				if method != "" {
					f.config["quantization_config"] = map[string]any{"quant_method": method, "bits": 4}
				}
				_, err := f.read(t)
				if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "packed by "+c.Name+",") {
					t.Errorf("%s, %s, method %q: %v", c.Name, d, method, err)
				}
			}
		}
	}
}

// Each packing that is not read is named by config.json if a tensor holds codes; plain tensors give way to a note.
func TestForeignMethods(t *testing.T) {
	for method, name := range foreign.Methods {
		f := plainFolder(t)
		f.config["quantization_config"] = map[string]any{"quant_method": method}
		r, err := f.read(t)
		if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], method) {
			t.Errorf("%s: %v, notes %v", method, err, r.Notes)
		}
		f.add(foreignLayer+".weight", safetensors.U8, 16, 16)
		f.add(foreignLayer+".weight_scale", safetensors.F32, 1)
		if _, err := f.read(t); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "packed by "+name+",") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// Codes that nothing describes are of no known packing, rather than of one whose scales are missing.
func TestStrayCodes(t *testing.T) {
	for _, d := range []safetensors.DType{safetensors.U8, safetensors.I8, safetensors.I16, safetensors.U32} {
		f := plainFolder(t)
		f.add(foreignLayer+".weight", d, 16, 16)
		_, err := f.read(t)
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "says how it is packed") {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// No checkpoint of a kind is taken for a foreign one.
func TestForeignNames(t *testing.T) {
	for _, name := range published(t) {
		f := load(t, name)
		for _, c := range foreign.Packings {
			for tensor := range f.tensors {
				base, ok := strings.CutSuffix(tensor, c.End)
				if _, both := f.tensors[base+c.Beside]; ok && both {
					t.Errorf("%s: %s is taken for %s", name, tensor, c.Name)
				}
			}
		}
	}
	if slices.ContainsFunc(foreign.Packings, func(p foreign.Packing) bool { return p.End == p.Beside }) {
		t.Error("an entry names one tensor twice")
	}
}
