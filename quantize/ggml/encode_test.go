package ggml_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
)

// Codes that a format holds exactly give the same block again.
func TestCompose(t *testing.T) {
	for _, kind := range []ggml.Type{
		ggml.Q4_0, ggml.Q4_1, ggml.Q5_0, ggml.Q5_1, ggml.Q8_0, ggml.MXFP4, ggml.NVFP4,
	} {
		c, _ := kind.Codes()
		elements, size := kind.Block()
		n, same := elements/c.Format.Group(), 0
		for src := testBlocks(kind)[:300*size]; len(src) > 0; src = src[size:] {
			b := c.Format.NewBlocks(quantize.F32, n)
			if _, err := kind.Recode(b, quantize.F32, src[:size]); err != nil {
				continue
			}
			got := make([]byte, size)
			if err := kind.Compose(got, c.Format, b); err != nil {
				t.Fatalf("%v: %v", kind, err)
			}
			if want := decode(t, kind, src[:size]); !equal(decode(t, kind, got), want) ||
				kind != ggml.NVFP4 && !bytes.Equal(got, src[:size]) { // whose scales have a sign that ggml ignores
				t.Fatalf("%v: %x, want %x", kind, got, src[:size])
			}
			same++
		}
		if same < 100 {
			t.Errorf("%v: %d blocks", kind, same)
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// A wider group becomes blocks with the same scale; a scale that float16 cannot hold is an error.
func TestComposeWide(t *testing.T) {
	format := quantize.Int4.WithGroup(64)
	b := format.NewBlocks(quantize.F32, 1)
	for i := range b.Packed {
		b.Packed[i] = byte(7 * i)
	}
	binary.LittleEndian.PutUint32(b.Scales, math.Float32bits(0.25))
	binary.LittleEndian.PutUint32(b.Biases, math.Float32bits(-1.5))
	dst := make([]byte, 40)
	if err := ggml.Q4_1.Compose(dst, format, b); err != nil {
		t.Fatal(err)
	}
	if want := engine(t, format, b, quantize.F32, 1); !equal(decode(t, ggml.Q4_1, dst), want) {
		t.Error(decode(t, ggml.Q4_1, dst), want)
	}
	if err := ggml.Q4_0.Compose(make([]byte, 36), format, b); !errors.Is(err, ggml.ErrRange) {
		t.Error(err)
	}
	binary.LittleEndian.PutUint32(b.Scales, math.Float32bits(0.1))
	if err := ggml.Q4_1.Compose(dst, format, b); !errors.Is(err, ggml.ErrRange) {
		t.Error(err)
	}
}

// Encoded elements differ from the originals by no more than the step of the type allows.
func TestEncode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const subnormal = 1.0 / (1 << 25) // how far off a scale in float16 may be that has no full precision
	for _, c := range []struct {
		kind  ggml.Type
		share float64 // of the largest element
	}{
		{ggml.Q8_0, 0.0045}, {ggml.Q4_0, 0.127}, {ggml.Q4_1, 0.075}, {ggml.MXFP4, 0.26},
	} {
		kind := c.kind
		elements, size := kind.Block()
		for scale := 1e-3; scale < 100; scale *= 7 {
			src, top := make([]float32, 64), 0.0
			for i := range src {
				src[i] = float32(rng.NormFloat64() * scale)
				top = max(top, math.Abs(float64(src[i])))
			}
			dst := make([]byte, 64/elements*size)
			if err := kind.Encode(dst, src); err != nil {
				t.Fatal(err)
			}
			for i, x := range decode(t, kind, dst) {
				if e := math.Abs(float64(x) - float64(src[i])); e > c.share*top+127*subnormal {
					t.Errorf("%v: %g becomes %g; the largest is %g", kind, src[i], x, top)
				}
			}
		}
		if err := kind.Encode(make([]byte, 1), make([]float32, 64)); !errors.Is(err, ggml.ErrLength) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	nan := make([]float32, 32)
	nan[3] = float32(math.Inf(1))
	for _, kind := range []ggml.Type{ggml.Q8_0, ggml.Q4_0, ggml.Q4_1, ggml.MXFP4} {
		_, size := kind.Block()
		if err := kind.Encode(make([]byte, size), nan); !errors.Is(err, ggml.ErrRange) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	if err := ggml.Q6_K.Encode(make([]byte, 210), make([]float32, 256)); !errors.Is(err, ggml.ErrType) {
		t.Error(err)
	}
}
