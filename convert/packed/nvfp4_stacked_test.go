package packed

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

const expertsUp = "model.layers.1.mlp.experts.gate_up_proj"

// Experts in one tensor are the same in both orders, whatever the number of their scales.
func TestStackedOrders(t *testing.T) {
	f := load(t, "nvfp4-experts-halves")
	want := elementsOf(t, f)
	for name, h := range f.tensors {
		if name != expertsUp && name != expertsUp+"_weight_scale" {
			continue
		}
		e, rows, width := h.Shape[0], h.Shape[1], h.Shape[2]
		data := make([]byte, len(h.data))
		for i := range e {
			for r := range rows {
				for c := range width {
					data[(i*width+c)*rows+r] = h.data[(i*rows+r)*width+c]
				}
			}
		}
		h.Shape, h.data = []int64{e, width, rows}, data
	}
	got := elementsOf(t, f)
	base := strings.TrimSuffix(expertsUp, "gate_up_proj")
	gate, up, both := got[base+"gate_proj.weight"], got[base+"up_proj.weight"], want[expertsUp]
	each := len(gate) / int(f.tensors[expertsUp].Shape[0])
	for e := range int(f.tensors[expertsUp].Shape[0]) {
		if !bytes.Equal(gate[e*each:][:each], both[2*e*each:][:each]) ||
			!bytes.Equal(up[e*each:][:each], both[(2*e+1)*each:][:each]) {
			t.Errorf("expert %d has other elements", e)
		}
	}
	if len(gate) == 0 || !slices.Contains([]int{len(both) / 2}, len(gate)) {
		t.Errorf("gates of %d bytes, both of %d", len(gate), len(both))
	}
}

// Scales that are powers of two have the codes of mxfp4, which are kept.
func TestStackedMXFP4(t *testing.T) {
	f := load(t, "nvfp4-experts-halves")
	for name, h := range f.tensors {
		if base, ok := strings.CutSuffix(name, "_weight_scale"); ok {
			h.DType, h.Shape[2] = safetensors.U8, h.Shape[2]/2
			h.data = bytes.Repeat([]byte{127}, len(h.data)/2)
			delete(f.tensors, base+"_weight_scale_2")
		}
	}
	r, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Weights {
		if w.Type != quantize.MXFP4 || w.Several {
			t.Errorf("%s: %s, several scales: %v", w.Name, w.Type, w.Several)
		}
		checkBatches(t, w)
	}
}

func TestStackedDamage(t *testing.T) {
	const scale = expertsUp + "_weight_scale"
	for what, c := range map[string]struct {
		damage func(*folder)
		want   string
	}{
		"no scales":     {func(f *folder) { delete(f.tensors, scale) }, "_weight_scale is missing"},
		"no factors":    {func(f *folder) { delete(f.tensors, scale+"_2") }, "_weight_scale_2, its scales of"},
		"other factors": {func(f *folder) { f.add(scale+"_2", safetensors.F32, 3) }, "one or two for each of"},
		"zero factors":  {func(f *folder) { clear(f.tensors[scale+"_2"].data) }, "want a positive number"},
		"other scales":  {func(f *folder) { f.add(scale, safetensors.F8E4M3, 4, 8, 8) }, "has a scale for 16"},
		"types":         {func(f *folder) { f.add(scale, safetensors.F32, 4, 128, 4) }, "it is F32, want"},
	} {
		f := load(t, "nvfp4-experts-halves")
		c.damage(f)
		if _, err := f.read(t); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}
