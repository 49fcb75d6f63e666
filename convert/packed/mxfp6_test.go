package packed

import (
	"math"
	"testing"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

const mxLayer = "model.layers.0.mlp.up_proj"

// 6-bit floats, four to three bytes, have codes of mxfp8. Their scales tell them from 4-bit ones.
func TestMXFP6(t *testing.T) {
	f := plainFolder(t)
	f.add(mxLayer+".weight_packed", safetensors.U8, 2, 48)
	f.add(mxLayer+".weight_scale", safetensors.U8, 2, 2)
	codes := f.tensors[mxLayer+".weight_packed"].data
	for i := range len(codes) / 3 {
		var word uint32
		for k := range 4 {
			word |= uint32(4*i+k) % 64 << (6 * k)
		}
		codes[3*i], codes[3*i+1], codes[3*i+2] = byte(word), byte(word>>8), byte(word>>16)
	}
	copy(f.tensors[mxLayer+".weight_scale"].data, []byte{127, 126, 130, 127})
	r, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	w := r.Weights[0]
	if len(r.Weights) != 1 || w.Type != quantize.MXFP8 || w.Shape[1] != 64 {
		t.Fatalf("%+v", r.Weights)
	}
	checkBatches(t, w)
	got := make([]byte, 4*128)
	if err := w.Read.Floats(got, 0, 128); err != nil {
		t.Fatal(err)
	}
	for i := range 128 {
		code := i % 64
		v := float64(code&7) / 8
		if e := code >> 3 & 3; e > 0 {
			v = (1 + v) * float64(int(1)<<(e-1))
		}
		if code >= 32 {
			v = -v
		}
		v *= []float64{1, 0.5, 8, 1}[i/32]
		if x := math.Float32frombits(le.Uint32(got[4*i:])); float64(x) != v {
			t.Errorf("code %d is %v, want %v", code, x, v)
		}
	}
}

// 8-bit floats with bytes as scales are mxfp8, with or without a configuration.
func TestMXFP8Bytes(t *testing.T) {
	for _, config := range []map[string]any{
		nil,
		{"quant_method": "compressed-tensors", "format": "mxfp8-quantized", "config_groups": map[string]any{
			"group_0": map[string]any{"weights": map[string]any{"num_bits": 8, "strategy": "group", "group_size": 32}},
		}},
	} {
		f := plainFolder(t)
		if config != nil {
			f.config["quantization_config"] = config
		}
		f.add(mxLayer+".weight", safetensors.F8E4M3, 2, 64)
		f.add(mxLayer+".weight_scale", safetensors.U8, 2, 2)
		for i := range f.tensors[mxLayer+".weight"].data {
			f.tensors[mxLayer+".weight"].data[i] = byte(i)
		}
		copy(f.tensors[mxLayer+".weight_scale"].data, []byte{120, 127, 128, 1})
		f.tensors[mxLayer+".weight"].data[127] = 0 // NaN
		r, err := f.read(t)
		if err != nil {
			t.Fatal(err)
		}
		w := r.Weights[0]
		if w.Type != quantize.MXFP8 {
			t.Errorf("%s: %s", w.Format, w.Why)
		}
		checkBatches(t, w)
		got := make([]byte, 4*128)
		if err := w.Read.Floats(got, 0, 128); err != nil {
			t.Fatal(err)
		}
		for i, code := range f.tensors[mxLayer+".weight"].data {
			want := numbers.FP8[safetensors.F8E4M3][code] * numbers.E8M0([]byte{120, 127, 128, 1}[i/32])
			if x := math.Float32frombits(le.Uint32(got[4*i:])); x != want {
				t.Errorf("element %d is %v, want %v", i, x, want)
			}
		}
	}
}
