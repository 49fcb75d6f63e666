package ggml_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/ingotml/ingot/quantize/ggml"
)

// noise returns n bytes of the splitmix64 sequence that starts at seed, as testdata/gen/ggml/blocks.py makes them.
func noise(seed uint64, n int) []byte {
	out := make([]byte, 0, n+8)
	for len(out) < n {
		seed += 0x9E3779B97F4A7C15
		z := seed
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		out = binary.LittleEndian.AppendUint64(out, z^z>>31)
	}
	return out[:n]
}

// halves are zeros, the smallest and largest subnormal numbers, the largest number, infinities and NaNs of float16.
var halves = []uint16{0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7c01, 0xfe00}

// testBlocks returns blocks of random bytes, then blocks of one repeated byte each, then a random block with each of
// halves at each even place, one of which is the scale.
func testBlocks(t ggml.Type) []byte {
	_, size := t.Block()
	b := noise(uint64(t), 2048*size)
	for v := range 256 {
		for range size {
			b = append(b, byte(v))
		}
	}
	for _, half := range halves {
		for at := 0; at < size-1; at += 2 {
			block := noise(uint64(t), size)
			binary.LittleEndian.PutUint16(block[at:], half)
			b = append(b, block...)
		}
	}
	return b
}

func decode(t *testing.T, kind ggml.Type, src []byte) []float32 {
	t.Helper()
	elements, size := kind.Block()
	dst := make([]float32, len(src)/size*elements)
	if err := kind.Decode(dst, src); err != nil {
		t.Fatal(err)
	}
	return dst
}

func digest(values []float32) string {
	h := sha256.New()
	for _, v := range values {
		bits := math.Float32bits(v)
		if v != v {
			bits = 0x7fc00000
		}
		_ = binary.Write(h, binary.LittleEndian, bits)
	}
	return hex.EncodeToString(h.Sum(nil))
}

type digested struct {
	Type     string
	Elements int
	SHA256   string
}

// Every type decodes bit for bit as the gguf package does, or as ggml does where the package has no decoder.
func TestDecode(t *testing.T) {
	var want []digested
	for _, file := range []string{"decoded.json", "recent.json"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var list []digested
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		want = append(want, list...)
	}
	if len(want) != 25 {
		t.Fatalf("%d types, want 25", len(want))
	}
	for _, w := range want {
		t.Run(w.Type, func(t *testing.T) {
			kind, err := ggml.ParseType(w.Type)
			if err != nil {
				t.Fatal(err)
			}
			got := decode(t, kind, testBlocks(kind))
			if len(got) != w.Elements || digest(got) != w.SHA256 {
				t.Errorf("%d elements with digest %s, want %d with %s", len(got), digest(got), w.Elements, w.SHA256)
			}
		})
	}
}

// A block of PQ2_0 is two blocks of Q2_0 with the same scale.
func TestDecodePQ2_0(t *testing.T) {
	src := testBlocks(ggml.PQ2_0)
	got := decode(t, ggml.PQ2_0, src)
	var halves []byte
	for ; len(src) > 0; src = src[34:] {
		halves = append(append(halves, src[:18]...), src[:2]...)
		halves = append(halves, src[18:34]...)
	}
	if want := decode(t, ggml.Q2_0, halves); digest(got) != digest(want) {
		t.Error("the elements differ")
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want error
		text string
	}{
		{ggml.Type(31).Check(), ggml.ErrType, "unsupported ggml type: Q4_0_4_4"},
		{ggml.Type(99).Check(), ggml.ErrType, "unsupported ggml type: type 99"},
		{ggml.Q4_0.Decode(make([]float32, 32), make([]byte, 17)), ggml.ErrLength,
			"wrong length: 17 bytes of Q4_0 and 32 elements"},
		{ggml.Q4_0.Decode(make([]float32, 31), make([]byte, 18)), ggml.ErrLength,
			"wrong length: 18 bytes of Q4_0 and 31 elements"},
		{ggml.F32.Decode(nil, nil), ggml.ErrType, "unsupported ggml type: F32 has no blocks to decode"},
	} {
		if !errors.Is(test.err, test.want) || test.err.Error() != test.text {
			t.Errorf("error %v, want %s", test.err, test.text)
		}
	}
	if err := ggml.NVFP4.Check(); err != nil {
		t.Error(err)
	}
	if _, err := ggml.ParseType("q4_2"); !errors.Is(err, ggml.ErrType) {
		t.Error(err)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range []ggml.Type{ggml.Q4_0, ggml.Q8_0, ggml.Q4_K, ggml.Q6_K, ggml.IQ2XXS, ggml.IQ3S, ggml.IQ4XS} {
		b.Run(kind.String(), func(b *testing.B) {
			src := testBlocks(kind)
			elements, size := kind.Block()
			dst := make([]float32, len(src)/size*elements)
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				if err := kind.Decode(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
