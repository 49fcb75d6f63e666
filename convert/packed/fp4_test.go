package packed

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

const deepseekV4 = "fp8-deepseek-v4"

// DeepSeek V4's experts are codes of mxfp4, and its other matrices of mxfp8.
func TestDeepseekV4(t *testing.T) {
	r, err := load(t, deepseekV4).read(t)
	if err != nil {
		t.Fatal(err)
	}
	experts := 0
	for _, w := range r.Weights {
		want := quantize.MXFP8
		if strings.Contains(w.Name, ".experts.") && !strings.Contains(w.Name, ".shared_experts.") {
			want = quantize.MXFP4
			experts++
		}
		if w.Type != want {
			t.Errorf("%s: type %s (%s), want %s", w.Name, w.Type, w.Why, want)
		}
	}
	if want := 3 * 4 * 3; experts != want {
		t.Errorf("%d experts' matrices, want %d", experts, want)
	}
}

// Scales of another shape are an error, and so are codes without scales that mark them as such.
func TestDeepseekV4Damaged(t *testing.T) {
	const name = "layers.0.ffn.experts.0.w1"
	for what, damage := range map[string]func(*folder){
		"scales of fewer rows": func(f *folder) {
			s := f.tensors[name+".scale"]
			s.Shape[0]--
			s.data = s.data[s.Shape[1]:]
		},
		"no scales":              func(f *folder) { delete(f.tensors, name+".scale") },
		"scales of another type": func(f *folder) { f.tensors[name+".scale"].DType = safetensors.U8 },
	} {
		f := load(t, deepseekV4)
		damage(f)
		if _, err := f.read(t); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error about %s", what, err, name)
		}
	}
}
