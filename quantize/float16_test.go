package quantize

import (
	"math"
	"testing"

	"github.com/x448/float16"
)

// Every half widens to what the library says, NaN with sign and payload, made quiet.
func TestFromF16(t *testing.T) {
	for h := range 1 << 16 {
		want := float16.Frombits(uint16(h)).Float32()
		if got := fromF16(uint16(h)); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%#04x: %#08x, want %#08x", h, math.Float32bits(got), math.Float32bits(want))
		}
		if h&0x7c00 == 0x7c00 {
			continue // widenF16 is for finite numbers
		}
		if got := widenF16(uint32(h) << 16); got != math.Float32bits(want) {
			t.Errorf("%#04x widened: %#08x, want %#08x", h, got, math.Float32bits(want))
		}
	}
}

// float32Edges calls f with the float32 of and next to every half and every tie between two halves, and with every
// exponent and sign with patterns of mantissas: zeros, subnormals, overflow, infinities, NaN.
func float32Edges(f func(bits uint32)) {
	around := func(bits uint32) {
		for d := uint32(0); d <= 2; d++ {
			f(bits + d - 1)
		}
	}
	for h := range 1 << 16 {
		here := float16.Frombits(uint16(h)).Float32()
		around(math.Float32bits(here))
		if h&0x7fff < 0x7c00 {
			next := float16.Frombits(uint16(h + 1)).Float32()
			if h&0x7fff == 0x7bff {
				next = float32(math.Copysign(65536, float64(here))) // the tie with infinity
			}
			around(math.Float32bits((here + next) / 2))
		}
	}
	for high := range uint32(1 << 9) {
		for _, mantissa := range []uint32{0, 1, 2, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2001, 0x3000, 0x200000,
			0x2aaaaa, 0x3fffff, 0x400000, 0x400001, 0x555555, 0x7fe000, 0x7fefff, 0x7ff000, 0x7ff001, 0x7fffff} {
			f(high<<23 | mantissa)
		}
	}
}

// All numbers round as the library rounds them. NaN is different: the engine has one per sign.
func TestToF16(t *testing.T) {
	float32Edges(func(bits uint32) {
		f := math.Float32frombits(bits)
		want := float16.Fromfloat32(f)
		rounded := math.Float32bits(want.Float32())
		if want.IsNaN() {
			want = want&0x8000 | 0x7d00
			rounded = bits&signBit | 0x7fe00000
		}
		if got := toF16(f); got != want.Bits() {
			t.Errorf("%#08x: %#04x, want %#04x", bits, got, want)
		}
		if got := math.Float32bits(roundF16(f)); got != rounded {
			t.Errorf("%#08x rounded: %#08x, want %#08x", bits, got, rounded)
		}
	})
}

// BenchmarkF16 compares the loops with the library's functions: on weights, and on weights of which half, at random,
// are zeros or subnormals, as in sparse and in small tensors.
func BenchmarkF16(b *testing.B) {
	const n = 1 << 18
	round := func(f float32) float32 { return float16.Fromfloat32(f).Float32() }
	for _, data := range []string{"weights", "mixed"} {
		values, out, half := make([]float32, n), make([]float32, n), make([]byte, 2*n)
		copy(half, benchData(F16))
		if data == "mixed" {
			for i := range n {
				if x := mix(uint64(i)); x&1 != 0 {
					le.PutUint16(half[2*i:], le.Uint16(half[2*i:])&0x83ff*uint16(x>>1&1))
				}
			}
		}
		F16.widen(values, half)
		for _, loop := range []struct {
			name string
			run  func()
		}{
			{"widen/own", func() { widenF16s(out, half) }},
			{"widen/library", func() {
				for i := range out {
					out[i] = float16.Frombits(le.Uint16(half[2*i:])).Float32()
				}
			}},
			{"store/own", func() { storeF16(half, values) }},
			{"store/library", func() {
				for i, f := range values {
					le.PutUint16(half[2*i:], float16.Fromfloat32(f).Bits())
				}
			}},
			{"line/own", func() {
				copy(out, values)
				lineF16(out, 1.5, 0.25)
			}},
			{"line/library", func() {
				for i, c := range values {
					out[i] = round(round(c*1.5) + 0.25)
				}
			}},
		} {
			b.Run(data+"/"+loop.name, func(b *testing.B) {
				b.SetBytes(2 * n)
				for b.Loop() {
					loop.run()
				}
			})
		}
	}
}
