package ggml_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
)

// engine returns the values of a format's codes in float32. Affine scales are widened first, since the engine computes
// in their type.
func engine(t *testing.T, format quantize.Type, b quantize.Blocks, scales quantize.DType, n int) []float32 {
	t.Helper()
	if scales == quantize.F16 && format.Mode() == "affine" {
		b.Scales, b.Biases = widen(t, b.Scales), widen(t, b.Biases)
	}
	out := make([]byte, 4*n*format.Group())
	if err := format.Decode(out, quantize.F32, b, quantize.F32); err != nil {
		t.Fatal(err)
	}
	values := make([]float32, n*format.Group())
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
	}
	return values
}

func widen(t *testing.T, b []byte) []byte {
	t.Helper()
	out := make([]byte, 2*len(b))
	if err := quantize.Cast(out, quantize.F32, b, quantize.F16); err != nil {
		t.Fatal(err)
	}
	return out
}

// Recoded arrays have the values of the blocks, exactly or within the error that Recode returns.
func TestRecode(t *testing.T) {
	for _, kind := range []ggml.Type{
		ggml.Q4_0, ggml.Q4_1, ggml.Q5_0, ggml.Q5_1, ggml.Q8_0, ggml.Q4_K, ggml.Q5_K, ggml.TQ1_0, ggml.TQ2_0, ggml.MXFP4,
		ggml.NVFP4, ggml.Q1_0, ggml.Q2_0, ggml.PQ2_0,
	} {
		for _, scales := range []quantize.DType{quantize.F16, quantize.F32} {
			t.Run(kind.String()+" "+string(scales), func(t *testing.T) { testRecode(t, kind, scales) })
		}
	}
}

func testRecode(t *testing.T, kind ggml.Type, scales quantize.DType) {
	c, ok := kind.Codes()
	if !ok {
		t.Fatal("no codes")
	}
	elements, size := kind.Block()
	src := testBlocks(kind)[:400*size]
	n := elements / c.Format.Group()
	kept := 0
	for ; len(src) > 0; src = src[size:] {
		dst := c.Format.NewBlocks(scales, n)
		worst, err := kind.Recode(dst, scales, src[:size])
		if errors.Is(err, ggml.ErrRange) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept++
		if rounds := c.Rounded && scales == quantize.F16; rounds == (worst == 0) {
			t.Fatalf("rounding error %g", worst)
		}
		want := decode(t, kind, src[:size])
		for i, got := range engine(t, c.Format, dst, scales, n) {
			// Products of a scale and a code are exact in float32. The sums are rounded, and equal if worst is 0.
			bound := worst
			if worst > 0 {
				bound += math.Abs(float64(want[i])) * 0x1p-22
			}
			if e := math.Abs(float64(got) - float64(want[i])); e > bound {
				t.Fatalf("element %d is %g, want %g within %g", i, got, want[i], worst)
			}
		}
	}
	if kept < 100 {
		t.Errorf("%d blocks recoded, want at least 100", kept)
	}
}

func TestRecodeErrors(t *testing.T) {
	large := make([]byte, 18)
	binary.LittleEndian.PutUint16(large, 0x7bff) // 65504, whose bias of -8 times it is not a float16
	dst := quantize.Int4.WithGroup(32).NewBlocks(quantize.F16, 1)
	_, err := ggml.Q4_0.Recode(dst, quantize.F16, large)
	if !errors.Is(err, ggml.ErrRange) || err.Error() != "scale out of range: block 0 of Q4_0" {
		t.Error(err)
	}
	if _, err := ggml.Q4_0.Recode(dst, quantize.F16, large[1:]); !errors.Is(err, ggml.ErrLength) {
		t.Error(err)
	}
	if _, err := ggml.Q4_0.Recode(dst, quantize.BF16, large); !errors.Is(err, ggml.ErrType) {
		t.Error(err)
	}
	if _, err := ggml.Q6_K.Recode(dst, quantize.F16, nil); !errors.Is(err, ggml.ErrType) {
		t.Error(err)
	}
	wide := quantize.Int4.WithGroup(32).NewBlocks(quantize.F32, 1)
	if _, err := ggml.Q4_0.Recode(wide, quantize.F32, large); err != nil {
		t.Error(err)
	}
}
