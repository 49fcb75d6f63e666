package packed

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
)

// elementsOf reads all weights of a folder as float32.
func elementsOf(t *testing.T, f *folder) map[string][]byte {
	t.Helper()
	r, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, w := range r.Weights {
		out[w.Name] = make([]byte, 4*numbers.Count(w.Shape))
		if err := w.Read.Floats(out[w.Name], 0, numbers.Count(w.Shape)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The packing's name decides whether zero points are stored minus 1, whatever else the configuration says.
func TestAutoRoundPackings(t *testing.T) {
	for _, c := range []struct {
		key, packing string
		minusOne     bool
	}{
		{"packing_format", "auto_round", false},
		{"packing_format", "AUTO_ROUND", false},
		{"packing_format", "auto_round:gptqmodel", false},
		{"packing_format", "auto_round:exllamav2", false},
		{"packing_format", "auto_round:tritonv2", false},
		{"backend", "autoround:exllamav2", false},
		{"backend", "auto_round:exllamav2", false},
		{"packing_format", "auto_round:auto_gptq", true},
		{"packing_format", "auto_round:gptq", true},
		{"packing_format", "auto_gptq", true},
		{"packing_format", "auto", true},
		{"backend", "autoround:gptq:exllamav2", true},
		{"backend", "auto_round:gptq:exllamav2", true},
		{"backend", "auto", true},
		{"packing_format", "", true},
	} {
		for _, method := range []string{"auto-round", "intel/auto-round", "auto_round"} {
			name := "gptq-auto-round"
			if c.minusOne {
				name = "gptq"
			}
			want, f := elementsOf(t, load(t, name)), load(t, name)
			q := f.quantization()
			delete(q, "packing_format")
			delete(q, "checkpoint_format")
			q["quant_method"], q[c.key] = method, c.packing
			for weight, got := range elementsOf(t, f) {
				if !bytes.Equal(got, want[weight]) {
					t.Errorf("%s %s %q: %s has other elements", method, c.key, c.packing, weight)
				}
			}
		}
	}
	// The same codes in the other packing are other numbers: the test above can fail.
	f := load(t, "gptq-auto-round")
	want := elementsOf(t, f)
	f.quantization()["packing_format"] = "auto_round:auto_gptq"
	same := 0
	for weight, got := range elementsOf(t, f) {
		if bytes.Equal(got, want[weight]) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d weights do not depend on the packing", same)
	}
}

func TestAutoRoundUnknown(t *testing.T) {
	for _, packing := range []string{"marlin", "auto_round:auto_awq", "itrex"} {
		f := load(t, "gptq-auto-round")
		f.quantization()["packing_format"] = packing
		if _, err := f.read(t); !errors.Is(err, ErrSource) {
			t.Errorf("%s: %v", packing, err)
		}
	}
}

// Layers of extra_config have bits and groups of their own.
func TestAutoRoundMixed(t *testing.T) {
	r, err := load(t, "gptq-auto-round-mixed").read(t)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[quantize.Type]int{}
	for _, w := range r.Weights {
		kinds[w.Type]++
		checkBatches(t, w)
	}
	want := map[quantize.Type]int{
		quantize.Int4.WithGroup(32): 8, quantize.Int5.WithGroup(32): 2, quantize.Int6: 2, quantize.Int8.WithGroup(32): 2,
	}
	for kind, n := range want {
		if kinds[kind] != n {
			t.Errorf("%d weights are %s, want %d: %v", kinds[kind], kind, n, kinds)
		}
	}
}
