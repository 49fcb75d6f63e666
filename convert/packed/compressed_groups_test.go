package packed

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// A scale is that of a whole tensor, or of a block of rows and columns.
func TestSharedScales(t *testing.T) {
	const layer = "model.layers.1.mlp.up_proj"
	for _, c := range []struct {
		strategy     string
		down, across int64
		zeros        bool
		what         string
		kind         quantize.Type
	}{
		{"tensor", 1, 1, false, "one scale", quantize.Int8},
		{"tensor", 1, 1, true, "one scale", quantize.Int8},
		{"block", 4, 2, false, "blocks of 32 x 32", quantize.Int8.WithGroup(32)},
		{"block", 4, 2, true, "blocks of 32 x 32", quantize.Int8.WithGroup(32)},
		{"block", 3, 1, true, "blocks of 48 x 64", quantize.Int8},
	} {
		f := load(t, "int8")
		weights := f.quantization("config_groups", "group_0", "weights")
		weights["strategy"] = c.strategy
		size := map[int64]int64{1: 128, 3: 48, 4: 32}[c.down]
		if c.strategy == "block" {
			weights["block_structure"] = []int64{size, 64 / c.across}
		}
		f.add(layer+".weight_scale", safetensors.BF16, c.down, c.across)
		for i := range c.down * c.across {
			f.tensors[layer+".weight_scale"].data[2*i+1] = 0x3f
			f.tensors[layer+".weight_scale"].data[2*i] = byte(i)
		}
		if c.zeros {
			f.add(layer+".weight_zero_point", safetensors.I8, c.down, c.across)
			for i := range f.tensors[layer+".weight_zero_point"].data {
				f.tensors[layer+".weight_zero_point"].data[i] = byte(3 - 2*i)
			}
		}
		r, err := f.read(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Weights {
			if w.Name != layer+".weight" {
				continue
			}
			if w.Type != c.kind || !strings.HasSuffix(w.Format, c.what) {
				t.Errorf("%s: %s, %s", c.strategy, w.Format, w.Type)
			}
			checkBatches(t, w)
			got := make([]byte, 4*128*64)
			if err := w.Read.Floats(got, 0, 128*64); err != nil {
				t.Fatal(err)
			}
			for i := range int64(128 * 64) {
				row, column := i/64, i%64
				at := row/size*c.across + column/(64/c.across)
				zero := int8(0)
				if c.zeros {
					zero = int8(3 - 2*at)
				}
				scale := math.Float32frombits(uint32(0x3f00|at) << 16)
				want := float32(int(int8(f.tensors[layer+".weight"].data[i]))-int(zero)) * scale
				if v := math.Float32frombits(le.Uint32(got[4*i:])); v != want {
					t.Fatalf("%s: element %d is %v, want %v", c.strategy, i, v, want)
				}
			}
		}
	}
	f := load(t, "int8")
	f.add(layer+".weight_scale", safetensors.BF16, 4, 2)
	if _, err := f.read(t); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "want scales for each of the") {
		t.Errorf("blocks that the configuration lacks: %v", err)
	}
}
