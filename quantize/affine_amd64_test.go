package quantize

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// sameAffine compares the two encoders on whole groups of 128 elements, in every affine format.
func sameAffine(t *testing.T, src []byte, from DType) {
	t.Helper()
	for _, q := range quantized() {
		if q.Mode() != "affine" {
			continue
		}
		want, got := buffers(q, src, from), buffers(q, src, from)
		errWant, errGot := q.encodeAffineGo(want, src, from), q.encodeAffineAVX2(got, src, from)
		if fmt.Sprint(errGot) != fmt.Sprint(errWant) {
			t.Fatalf("%s of %s: got error %v, want %v", q, from, errGot, errWant)
		}
		if errWant != nil {
			continue
		}
		size := q.GroupSizes(from)
		for g := range len(src) / size.Source {
			for _, p := range []struct {
				what      string
				got, want []byte
				size      int
			}{{"scale", got.Scales, want.Scales, size.Scales}, {"bias", got.Biases, want.Biases, size.Biases},
				{"codes", got.Packed, want.Packed, size.Packed}} {
				if a, b := p.got[g*p.size:][:p.size], p.want[g*p.size:][:p.size]; !bytes.Equal(a, b) {
					t.Fatalf("%s of %s, group %d: got %s %x, want %x\n%s", q, from, g, p.what, a, b,
						rowText(src[g*size.Source:][:size.Source], from))
				}
			}
		}
	}
}

// specials are bits of float32 at which something changes: zeros, subnormals, the ends of ranges, ties of codes.
var specials = []uint32{
	0, 1, 0x7fffff, 0x800000, 0x00010000, 0x33800000, 0x33d6bf94, 0x33d6bf95, 0x33d6bf96, 0x387fe000, 0x38800000,
	0x3f000000, 0x3f800000,
	0x3fc00000, 0x40700000, 0x41700000, 0x477fe000, 0x477fefff, 0x477ff000, 0x47800000, 0x73c00000, 0x7e800000, 0x7f000000,
	0x7f7f0000, 0x7f7fffff,
}

func TestAffineAVX2(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	golden := goldens(t, "edges.safetensors")
	for _, from := range targets {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			edges, _ := golden(string(from))
			sameAffine(t, edges, from)
			var random []byte
			for r := range 128 * kinds {
				random = append(random, randomRow(r, from)...)
			}
			sameAffine(t, random, from)
			row := 128 * from.Size()
			for rows := range 20 { // ends of batches
				sameAffine(t, random[:rows*row], from)
			}
			sameAffine(t, pairs(from), from)
			sameAffine(t, ties(from), from)
		})
	}
}

// pairs are groups of which each pair of specials, with either sign, are the ends, finite ones as the type has them.
func pairs(d DType) []byte {
	var values []float32
	for _, b := range specials {
		for _, v := range []float32{math.Float32frombits(b), -math.Float32frombits(b)} {
			if e := elements(d, v); CheckFinite(e, d) == nil {
				values = append(values, v)
			}
		}
	}
	var src []byte
	for i, lo := range values {
		for k, hi := range values {
			v := make([]float32, 128)
			for j := range v {
				v[j] = []float32{lo, hi}[mix(uint64(i*1000+k)*128+uint64(j))&1]
			}
			src = append(src, elements(d, v...)...)
		}
	}
	return src
}

// ties are elements half way between two codes, or next to it.
func ties(d DType) []byte {
	var src []byte
	for _, limit := range []int{3, 7, 15, 31, 63, 255} {
		for shift := range 8 {
			v := make([]float32, 128)
			for j := range v {
				x := float64(mix(uint64(shift*128+j))%uint64(2*limit+1)) / 2 // whole and half numbers
				x = math.Ldexp(x, -shift) * []float64{1, 1 + 0x1p-7, 1 - 0x1p-7, 1}[j&3]
				v[j] = float32(x)
			}
			v[j0(shift)], v[j0(shift)+32], v[j0(shift)+64], v[j0(shift)+96] = 0, 0, 0, 0
			top := float32(math.Ldexp(float64(limit), -shift))
			for g := range 4 {
				v[g*32+1+j0(shift)] = top
			}
			src = append(src, elements(d, v...)...)
			for j := range v {
				v[j] -= top / 2
			}
			src = append(src, elements(d, v...)...)
		}
	}
	return src
}

func j0(shift int) int { return shift * 3 }

// A number that is not finite is found wherever it is, and the one that comes first is named.
func TestAffineAVX2NotFinite(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	inf := float32(math.Inf(1))
	for _, from := range targets {
		plain := make([]byte, 0, 40*128*from.Size())
		for r := range 40 {
			plain = append(plain, randomRow(r*kinds, from)...)
		}
		for _, bad := range []float32{inf, -inf, float32(math.NaN()), float32(math.Copysign(math.NaN(), -1))} {
			for at := 0; at < 40*128; at += 97 {
				src := slices.Clone(plain)
				copy(src[at*from.Size():], elements(from, bad))
				copy(src[(40*128-1)*from.Size():], elements(from, inf))
				for _, q := range []Type{Int4, Int3.WithGroup(32), Int8.WithGroup(128)} {
					var e *ElementError
					if err := q.encodeAffineAVX2(buffers(q, src, from), src, from); !errors.As(err, &e) || e.Index != int64(at) {
						t.Fatalf("%s of %s, %v at %d: got %v", q, from, bad, at, err)
					}
				}
			}
		}
	}
}
