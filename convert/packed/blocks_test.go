package packed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

const (
	gptOSS = "../models/gpt_oss-published"
	bank   = "model.layers.1.mlp.experts.gate_up_proj"
)

// Blocks are read as codes and as floats, which agree, under their own names.
func TestBlocks(t *testing.T) {
	r, err := load(t, gptOSS).read(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Weights) != 4 || len(r.Recognized) != 1 || r.Recognized[0].Kind != "fp4" {
		t.Fatalf("%d weights, %+v", len(r.Weights), r.Recognized)
	}
	for _, w := range r.Weights {
		if w.Type != quantize.MXFP4 || len(w.Shape) != 3 || !strings.HasSuffix(w.Name, "_blocks") {
			t.Errorf("%s: %s %v", w.Name, w.Type, w.Shape)
		}
		checkBatches(t, w)
	}
}

func TestDamagedBlocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(f *folder)
		want   []string
	}{
		{
			"no scales", func(f *folder) { delete(f.tensors, bank+"_scales") },
			[]string{bank + "_blocks", bank + "_scales is missing"},
		},
		{
			"other scales", func(f *folder) {
				h := f.tensors[bank+"_scales"]
				h.Shape, h.data = slices.Clone(h.Shape), h.data[:len(h.data)/2]
				h.Shape[2] /= 2
			}, []string{bank + "_scales", "it is U8 [4 128 1]", "are U8 [4 128 2]"},
		},
		{
			"floats as scales", func(f *folder) {
				h := f.tensors[bank+"_scales"]
				h.DType, h.data = safetensors.BF16, append(h.data, h.data...)
			}, []string{bank + "_scales", "it is BF16"},
		},
		{
			"larger groups", func(f *folder) {
				h := f.tensors[bank+"_blocks"]
				h.Shape = []int64{4, 128, 1, 32}
			}, []string{bank + "_blocks", "want matrices of groups of 16 bytes"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := load(t, gptOSS)
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
